// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "patterns/mixed.hpp"

#include <cmath>

namespace bench {

const std::array<std::uint32_t, 4096>& mixed_sizes() {
    static const std::array<std::uint32_t, 4096> sizes = [] {
        std::array<std::uint32_t, 4096> made{};
        const double ratio = static_cast<double>(mixed_largest) / mixed_smallest;
        for (std::size_t index = 0; index < made.size(); ++index) {
            const double part = static_cast<double>(index) / (made.size() - 1);
            made[index] = static_cast<std::uint32_t>(mixed_smallest * std::pow(ratio, part));
        }
        return made;
    }();
    return sizes;
}

} // namespace bench
