// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_FUZZ_OPTIONS_HPP
#define TESTS_FUZZ_OPTIONS_HPP

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace fuzz {

struct Options {
    std::uint64_t seed = 0;
    unsigned seconds = 10;
    std::size_t processes = 6;
    std::uint64_t steps = 4000; ///< of a process before another takes its place
    uid_t uid = 65534;          ///< of the fuzzing processes
    uid_t bystander = 1;        ///< of the innocent one
    std::uint64_t memlock = std::uint64_t{64} << 20; ///< RLIMIT_MEMLOCK of the fuzzing user
    std::uint64_t memory_max = 0;                    ///< memory.max of their cgroup; 0: no cgroup
    std::string json;                                ///< file for the result
    bool spoil = false;                              ///< break the memory once, to see it noticed
};

/// From the command line. Prints the usage and exits if that is asked for or wrong. Without a
/// --seed it takes one from the system.
Options parse_options(int argc, char** argv);

} // namespace fuzz

#endif
