// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <getopt.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <random>
#include <string_view>

#include "guarded.hpp"
#include "operations.hpp"
#include "report.hpp"
#include "supervisor.hpp"

namespace {

constexpr const char* usage_text =
    R"(usage: hcamem_fuzz [OPTION...]

Calls everything that an unprivileged user can reach in the driver, from several
processes at once, and checks what memory holds, what is charged and what becomes
of a second user who does no harm. To be started as root; status 0 if all was
right, 1 if not.

The same seed gives each process the same operations. How the processes' calls
interleave, and so when one is refused or killed, is up to the kernel. A single
process is never killed, and repeats itself exactly.

  --seed N           (default: a new one, which is printed)
  --seconds N        how long, or longer until each operation succeeded (default: 10)
  --processes N      at once (default: 6)
  --steps N          operations of a process before another takes its place (default: 4000)
  --memory-max BYTES a memory cgroup for them with this limit (default: none)
  --spoil            change memory behind the checks' back, which has to be noticed
)";

enum Letter { seed = 1, seconds, processes, steps, memory_max, spoil, help };

[[noreturn]] void usage(int status) {
    (status == 0 ? std::cout : std::cerr) << usage_text;
    std::exit(status);
}

std::uint64_t number(const char* argument) {
    std::uint64_t value = 0;
    const char* end = argument + std::strlen(argument);
    if (const auto [stopped, error] = std::from_chars(argument, end, value);
        error != std::errc{} || stopped != end) {
        std::cerr << "hcamem_fuzz: '" << argument << "' is not a number\n";
        usage(2);
    }
    return value;
}

fuzz::Options parse_options(int argc, char** argv) {
    static const std::array<option, 8> known{
        {{"seed", required_argument, nullptr, seed},
         {"seconds", required_argument, nullptr, seconds},
         {"processes", required_argument, nullptr, processes},
         {"steps", required_argument, nullptr, steps},
         {"memory-max", required_argument, nullptr, memory_max},
         {"spoil", no_argument, nullptr, spoil},
         {"help", no_argument, nullptr, help},
         {nullptr, 0, nullptr, 0}}};
    std::random_device device;
    fuzz::Options options;
    options.seed = std::uint64_t{device()} << 32 | device();
    for (int found = 0; (found = getopt_long(argc, argv, "", known.data(), nullptr)) != -1;) {
        switch (found) {
        case seed:
            options.seed = number(optarg);
            break;
        case seconds:
            options.seconds = number(optarg);
            break;
        case processes:
            options.processes = number(optarg);
            break;
        case steps:
            options.steps = number(optarg);
            break;
        case memory_max:
            options.memory_max = number(optarg);
            break;
        case spoil:
            options.spoil = true;
            break;
        case help:
            usage(0);
        default:
            usage(2);
        }
    }
    if (optind != argc || options.processes < 1 || options.processes > fuzz::most_processes) {
        std::cerr << "hcamem_fuzz: 1 to " << fuzz::most_processes << " processes, no arguments\n";
        usage(2);
    }
    return options;
}

/// An access that was taken for safe.
void report_crash(std::uintptr_t address) {
    fuzz::Report::get().fail(fuzz::text("a process crashed at ", fuzz::hex(address)));
}

} // namespace

int main(int argc, char** argv) {
    try {
        fuzz::install_guard(report_crash);
        // How execute() starts this program again.
        if (argc == 4 && std::string_view(argv[1]) == "--inherited") {
            fuzz::Report::open(std::atoi(argv[3]));
            fuzz::run_inherited(std::atoi(argv[2]));
        }
        const fuzz::Options options = parse_options(argc, argv);
        if (geteuid() != 0) {
            std::cerr << "hcamem_fuzz: to be started as root\n";
            return 2;
        }
        std::cout << "seed " << options.seed << std::endl;
        return fuzz::Supervisor(options).run() ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << "hcamem_fuzz: " << error.what() << '\n';
        return 2;
    }
}
