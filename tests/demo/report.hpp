// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The outcome of the demonstration, for people and for programs.
#ifndef TESTS_DEMO_REPORT_HPP
#define TESTS_DEMO_REPORT_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "sample_pair.hpp"

namespace demo {

/// The ping-pongs over one kind of memory.
struct MemoryColumn {
    std::vector<double> usec_per_iteration; // as many as Outcome::message_bytes
    Pins pins;
};

struct Outcome {
    std::string kernel;
    std::string hca;
    std::string registration; // of the pool's memory
    std::vector<std::uint64_t> message_bytes;
    std::vector<std::uint64_t> iterations;
    std::uint64_t data_errors = 0;
    std::uint64_t rdma_rounds = 0;
    MemoryColumn pool; // its pins include those of the RDMA run
    MemoryColumn malloc;
    std::vector<std::string> probes;
};

/// What the outcome fails to show, one line each; empty if it shows everything.
std::vector<std::string> shortcomings(const Outcome& outcome);

void print_table(const Outcome& outcome);

/// Throws if the file cannot be written.
void write_json(const Outcome& outcome, const std::string& path);

} // namespace demo

#endif
