// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "contender.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace bench {
namespace {

// Filled before main(), in no particular order.
std::vector<entry>& entries() {
    static std::vector<entry> all;
    return all;
}

} // namespace

registered::registered(std::string name, side whose, contender_maker make) {
    entries().push_back({std::move(name), whose, std::move(make)});
}

std::vector<entry> all_entries() {
    std::vector<entry> sorted = entries();
    std::ranges::sort(sorted, {}, [](const entry& one) { return std::tie(one.whose, one.name); });
    return sorted;
}

} // namespace bench
