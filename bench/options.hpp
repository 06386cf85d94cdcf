// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_OPTIONS_HPP
#define BENCH_OPTIONS_HPP

#include <filesystem>
#include <regex>
#include <string>

namespace bench {

struct options {
    std::filesystem::path directory = "."; // for pool.json and pool.md
    std::string source;                    // memory or device
    std::regex filter{""};                 // of PATTERN/BYTES/THREADS/IMPLEMENTATION, and "memory"
    int repetitions = 12;
    double seconds = 0.06; // per repetition
    bool quick = false;
    bool list = false;
};

/// Ends the program after --help and what it does not understand.
options parse_options(int count, char** arguments);

} // namespace bench

#endif
