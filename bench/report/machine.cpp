// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "report/machine.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <string>

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace bench {
namespace {

std::string processor_name() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("model name")) {
            return line.substr(line.find(':') + 2);
        }
    }
    return "unknown processor";
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[sizeof "2000-01-01"];
    std::strftime(text, sizeof text, "%F", &parts);
    return text;
}

double seconds_of(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

} // namespace

std::string machine_line() {
    utsname kernel{};
    uname(&kernel);
    return std::string(kernel.sysname) + " " + kernel.release + " " + kernel.machine + ", " +
           processor_name() + ", " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) +
           " processors, " + today();
}

load_meter::load_meter() : start_(read()) {}

load_meter::reading load_meter::read() {
    // proc(5), /proc/stat: user nice system idle iowait irq softirq steal, in clock ticks.
    std::ifstream in("/proc/stat");
    std::string name;
    double user = 0;
    double nice = 0;
    double system = 0;
    double idle = 0;
    double waiting = 0;
    double interrupts = 0;
    double soft = 0;
    double stolen = 0;
    in >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen;
    const double busy = user + nice + system + interrupts + soft + stolen;
    rusage mine{};
    getrusage(RUSAGE_SELF, &mine);
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return {std::chrono::duration<double>(now).count(),
            busy / static_cast<double>(sysconf(_SC_CLK_TCK)),
            seconds_of(mine.ru_utime) + seconds_of(mine.ru_stime)};
}

double load_meter::busy_elsewhere() const {
    const reading now = read();
    const double passed = now.seconds - start_.seconds;
    const double elsewhere = (now.busy - start_.busy) - (now.ours - start_.ours);
    return passed > 0 ? std::max(0.0, elsewhere / passed) : 0;
}

} // namespace bench
