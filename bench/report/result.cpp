// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "report/result.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace bench {

double quantile(std::vector<double> values, double part) {
    std::ranges::sort(values);
    const double place = part * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(place));
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], place - std::floor(place));
}

double result::spread() const {
    return (quantile(samples, 0.75) - quantile(samples, 0.25)) / ns();
}

const result* results::find(const bench_case& what, std::string_view impl) const {
    const auto found = std::ranges::find_if(
        all_, [&](const result& one) { return one.what == what && one.impl == impl; });
    return found != all_.end() ? &*found : nullptr;
}

const result* results::best_peer(const bench_case& what) const {
    const result* best = nullptr;
    for (const result& one : all_) {
        if (one.what == what && one.whose == side::peer &&
            (best == nullptr || one.ns() < best->ns())) {
            best = &one;
        }
    }
    return best;
}

std::optional<double> results::ratio(const result& one, const result* other) {
    if (other == nullptr) {
        return std::nullopt;
    }
    return one.ns() / other->ns();
}

std::vector<double> results::calibration() const {
    std::vector<double> samples;
    for (const result& one : all_) {
        if (one.whose == side::calibration) {
            samples.insert(samples.end(), one.samples.begin(), one.samples.end());
        }
    }
    return samples;
}

} // namespace bench
