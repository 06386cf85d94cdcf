// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "options.hpp"

#include <getopt.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <random>
#include <stdexcept>

#include "report.hpp"

namespace fuzz {

namespace {

constexpr const char* usage_text =
    R"(usage: hcamem_fuzz [OPTION...]

Calls everything that an unprivileged user can reach in the driver, from several
processes at once, and checks what memory holds, what is charged and what becomes
of a second user who does no harm. To be started as root; status 0 if all was
right, 1 if not. The same seed gives each process the same operations.

  --seed N           (default: a new one, which is printed)
  --seconds N        how long (default: 10)
  --processes N      at once (default: 6)
  --steps N          operations of a process before another takes its place
  --uid N            the user of the processes (default: 65534)
  --bystander-uid N  the second user (default: 1)
  --memlock BYTES    RLIMIT_MEMLOCK of the first user (default: 64 MiB)
  --memory-max BYTES a memory cgroup for them with this limit (default: none)
  --json FILE        the result as JSON
  --spoil            change memory behind the checks' back, which has to be noticed
)";

enum Letter {
    seed = 1,
    seconds,
    processes,
    steps,
    uid,
    bystander,
    memlock,
    memory_max,
    json,
    spoil,
    help
};

[[noreturn]] void usage(int status) {
    (status == 0 ? std::cout : std::cerr) << usage_text;
    std::exit(status);
}

std::uint64_t number(const char* argument) {
    std::size_t used = 0;
    const std::string text = argument;
    try {
        const std::uint64_t value = std::stoull(text, &used, 0);
        if (used == text.size()) {
            return value;
        }
    } catch (const std::logic_error&) {
        // told below
    }
    std::cerr << "hcamem_fuzz: '" << text << "' is not a number\n";
    usage(2);
}

std::uint64_t fresh_seed() {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
}

} // namespace

Options parse_options(int argc, char** argv) {
    static const std::array<option, 12> known{
        {{"seed", required_argument, nullptr, seed},
         {"seconds", required_argument, nullptr, seconds},
         {"processes", required_argument, nullptr, processes},
         {"steps", required_argument, nullptr, steps},
         {"uid", required_argument, nullptr, uid},
         {"bystander-uid", required_argument, nullptr, bystander},
         {"memlock", required_argument, nullptr, memlock},
         {"memory-max", required_argument, nullptr, memory_max},
         {"json", required_argument, nullptr, json},
         {"spoil", no_argument, nullptr, spoil},
         {"help", no_argument, nullptr, help},
         {nullptr, 0, nullptr, 0}}};
    Options options;
    options.seed = fresh_seed();
    for (int found = 0; (found = getopt_long(argc, argv, "", known.data(), nullptr)) != -1;) {
        switch (found) {
        case seed:
            options.seed = number(optarg);
            break;
        case seconds:
            options.seconds = static_cast<unsigned>(number(optarg));
            break;
        case processes:
            options.processes = number(optarg);
            break;
        case steps:
            options.steps = number(optarg);
            break;
        case uid:
            options.uid = static_cast<uid_t>(number(optarg));
            break;
        case bystander:
            options.bystander = static_cast<uid_t>(number(optarg));
            break;
        case memlock:
            options.memlock = number(optarg);
            break;
        case memory_max:
            options.memory_max = number(optarg);
            break;
        case json:
            options.json = optarg;
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
    const bool right = optind == argc && options.processes >= 1 &&
                       options.processes <= most_processes && options.uid != 0 &&
                       options.bystander != 0 && options.bystander != options.uid;
    if (!right) {
        std::cerr << "hcamem_fuzz: 1 to " << most_processes
                  << " processes, and two users who are not root\n";
        usage(2);
    }
    return options;
}

} // namespace fuzz
