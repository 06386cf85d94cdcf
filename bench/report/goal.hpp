// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the library is to reach.
#ifndef BENCH_REPORT_GOAL_HPP
#define BENCH_REPORT_GOAL_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/result.hpp"

namespace bench {

/// A property of the library that is not a time, see memory/.
struct figure {
    std::string name;
    double value; // a share
};

/// What one goal wants, and what was measured for it.
struct verdict {
    std::string ours;
    std::string against; // empty: the goal is a number
    std::string unit;
    bool at_most; // or at least
    double limit;
    std::vector<std::optional<double>> values; // of each case it is for; none: not measured

    [[nodiscard]] std::size_t measured() const;
    [[nodiscard]] std::size_t met() const;
};

/// Every goal, over all cases that it is for, in the order of all_cases().
std::vector<verdict> judge(const results& all, const std::vector<figure>& figures);

} // namespace bench

#endif
