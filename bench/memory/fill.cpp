// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <cstdint>
#include <string>

#include <hcamem/pool.hpp>

#include "memory/figures.hpp"
#include "ours/pools.hpp"
#include "patterns/mixed.hpp"

namespace bench {
namespace {

constexpr std::uint64_t default_growth = 0;
// A slab at a time, so that the size of the last one does not matter.
constexpr std::uint64_t smallest_growth = HCAMEM_SLAB_UNIT;
constexpr std::uint64_t maximum = std::uint64_t{1} << 30;

struct pool_user {
    hcamem::pool& pool;
    void* get(std::size_t bytes) { return pool.allocate(bytes); }
    void put(void* buffer, std::size_t bytes) { pool.deallocate(buffer, bytes); }
};

void add(std::vector<figure>& figures, const hcamem::pool& pool, const live_set& live,
         const std::string& when) {
    const hcamem_stats now = pool.stats();
    const auto slabs = static_cast<double>(now.slab_bytes);
    figures.push_back(
        {"live bytes / slab bytes, " + when, static_cast<double>(now.live_bytes) / slabs});
    figures.push_back(
        {"bytes asked for / slab bytes, " + when, static_cast<double>(live.bytes()) / slabs});
}

void measure(std::vector<figure>& figures, std::uint64_t growth, std::uint64_t replacements,
             const std::string& how) {
    hcamem::pool pool = make_pool(growth, maximum);
    pool_user user{pool};
    live_set live(1);
    live.fill(user);
    add(figures, pool, live, "first fill" + how);
    for (std::uint64_t count = 0; count < replacements; ++count) {
        live.replace(user);
    }
    add(figures, pool, live,
        "after " + std::to_string(replacements / 1'000'000) + " million replacements" + how);
    live.empty(user);
}

} // namespace

std::vector<figure> measure_fill(std::uint64_t replacements) {
    std::vector<figure> figures;
    measure(figures, smallest_growth, replacements, "");
    measure(figures, default_growth, replacements, ", default growth");
    return figures;
}

} // namespace bench
