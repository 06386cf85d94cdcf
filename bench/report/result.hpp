// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_REPORT_RESULT_HPP
#define BENCH_REPORT_RESULT_HPP

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/bench_case.hpp"

namespace bench {

/// Linear between the two values next to it, as numpy does. values must not be empty.
double quantile(std::vector<double> values, double part);

/// One implementation in one case.
struct result {
    bench_case what;
    std::string impl;
    side whose;
    std::vector<double> samples; // ns per buffer, one of each repetition

    [[nodiscard]] double ns() const { return quantile(samples, 0.5); }
    /// Distance of the quartiles over the median: how much repetitions differ.
    [[nodiscard]] double spread() const;
};

/// All results of one run: ratios are only taken between them.
class results {
  public:
    void add(result one) { all_.push_back(std::move(one)); }

    [[nodiscard]] const std::vector<result>& all() const { return all_; }
    [[nodiscard]] const result* find(const bench_case& what, std::string_view impl) const;
    /// The fastest peer of a case, nullptr if none does the pattern.
    [[nodiscard]] const result* best_peer(const bench_case& what) const;
    /// The time of `one` over that of `other`; none without `other`.
    static std::optional<double> ratio(const result& one, const result* other);

    /// Every result of the calibration loop: one per case and repetition.
    [[nodiscard]] std::vector<double> calibration() const;

  private:
    std::vector<result> all_;
};

} // namespace bench

#endif
