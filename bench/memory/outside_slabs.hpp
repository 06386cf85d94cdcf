// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_MEMORY_OUTSIDE_SLABS_HPP
#define BENCH_MEMORY_OUTSIDE_SLABS_HPP

#include <cstdint>

#include <hcamem/pool.hpp>

#include "memory/private_memory.hpp"
#include "ours/pools.hpp"

namespace bench {

/// Private memory outside the slabs that a new pool comes to while `take` gets buffers from it,
/// by the bytes of its slabs. `give` gives them back.
template <class Take, class Give>
double share_outside_slabs(Take take, Give give) {
    constexpr std::uint64_t maximum = std::uint64_t{1} << 30;
    // What is made once per process is not a pool's.
    { const hcamem::pool first = make_pool(0, maximum); }
    const std::uint64_t before = private_bytes([](const void*) { return false; });
    hcamem::pool pool = make_pool(0, maximum);
    take(pool);
    const std::uint64_t after =
        private_bytes([&pool](const void* address) { return pool.owns(address); });
    const std::uint64_t slabs = pool.stats().slab_bytes;
    give(pool);
    const double more = after > before ? static_cast<double>(after - before) : 0;
    return more / static_cast<double>(slabs);
}

} // namespace bench

#endif
