// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "probes/call_count.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/failure.hpp"

namespace bench {
namespace {

std::uint64_t address_of(const std::string& function) {
    std::ifstream symbols("/proc/kallsyms");
    for (std::string line; std::getline(symbols, line);) {
        // Taking each of 200000 lines apart is slow in an emulated machine.
        if (!line.ends_with(" " + function)) {
            continue;
        }
        std::istringstream fields(line);
        std::uint64_t address = 0;
        if (fields >> std::hex >> address && address != 0) {
            return address;
        }
    }
    throw std::runtime_error("the kernel has no function " + function + "(), or hides it");
}

} // namespace

call_count::call_count(const std::string& function) {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_BREAKPOINT;
    attributes.bp_type = HW_BREAKPOINT_X;
    attributes.bp_addr = address_of(function);
    attributes.bp_len = sizeof(long);
    attributes.exclude_hv = 1;
    event_ = support::UniqueFd(static_cast<int>(
        support::must(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC),
                      ("a breakpoint at " + function + "()").c_str())));
}

std::uint64_t call_count::value() const {
    std::uint64_t count = 0;
    support::must(read(event_.get(), &count, sizeof count), "count of a breakpoint");
    return count;
}

} // namespace bench
