// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Runs the two sides of a sample under the eyes of the page-pin probes.
#ifndef TESTS_DEMO_SAMPLE_PAIR_HPP
#define TESTS_DEMO_SAMPLE_PAIR_HPP

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/page_pins.hpp"

namespace demo {

/// Pin calls on the memory of messages.
struct Pins {
    /// By anybody, on any memory the HCA could reach.
    std::uint64_t by_anyone = 0;
    /// By the processes whose memory it is.
    std::uint64_t by_owner = 0;
    std::map<std::string, std::uint64_t> by_function;

    void add(const Pins& other);
};

/// What one run of a server and a client gave.
struct PairResult {
    std::string hca;
    std::string registration;
    std::uint64_t data_errors = 0;
    double usec_per_iteration = 0; // 0 if the sample does not say
    Pins pins;                     // from the start of both processes to their end
};

/// Where the samples are and where their results may go.
struct Place {
    std::string programs;
    std::string scratch;
};

/// Runs `program OPTION...` as server and as client of it. Throws with the line that a side
/// printed if it fails.
PairResult run_pair(const Place& place, const std::string& program,
                    const std::vector<std::string>& options, support::PagePins& probes);

} // namespace demo

#endif
