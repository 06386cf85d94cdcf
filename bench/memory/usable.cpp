// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hcamem/pool.hpp>

#include "memory/figures.hpp"
#include "ours/pools.hpp"
#include "patterns/touch.hpp"

namespace bench {
namespace {

constexpr std::uint64_t slab = HCAMEM_SLAB_UNIT;

double usable_blocks() {
    hcamem::pool pool = make_pool(slab, slab);
    std::vector<void*> taken;
    while (void* const block = pool.try_allocate(kernel_page)) {
        taken.push_back(block);
    }
    const double share =
        static_cast<double>(taken.size() * kernel_page) / static_cast<double>(slab);
    pool.deallocate_n(taken);
    return share;
}

} // namespace

std::vector<figure> measure_usable() {
    return {{"share of a slab usable as 4 KiB blocks", usable_blocks()}};
}

} // namespace bench
