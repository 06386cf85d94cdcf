// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Where and when a run was, and what else the machine did meanwhile.
#ifndef BENCH_REPORT_MACHINE_HPP
#define BENCH_REPORT_MACHINE_HPP

#include <string>

namespace bench {

/// "Linux 6.12.57 x86_64, AMD EPYC 7B13, 2 processors, 2025-11-30"
std::string machine_line();

/// Processor time that went elsewhere between construction and busy_elsewhere().
class load_meter {
  public:
    load_meter();

    /// Processors that other processes kept busy, on average: 0.5 is half of one. Time that a
    /// hypervisor took counts too.
    [[nodiscard]] double busy_elsewhere() const;

  private:
    struct reading {
        double seconds; // of a clock
        double busy;    // of all processors, in seconds
        double ours;
    };
    static reading read();

    reading start_;
};

} // namespace bench

#endif
