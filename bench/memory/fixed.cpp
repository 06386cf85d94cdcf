// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The figures of measure_bookkeeping() and measure_usable(), for pools of one size.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <hcamem/buffer_pool.hpp>
#include <hcamem/pool.hpp>

#include "memory/figures.hpp"
#include "memory/outside_slabs.hpp"
#include "ours/pools.hpp"
#include "patterns/touch.hpp"

namespace bench {
namespace {

double bookkeeping() {
    constexpr std::size_t count = 65536; // 256 MiB
    std::vector<void*> taken(count);
    std::optional<hcamem::buffer_pool> buffers;
    return share_outside_slabs(
        [&](hcamem::pool& pool) {
            buffers.emplace(pool, kernel_page, count);
            for (void*& buffer : taken) {
                buffer = buffers->get();
            }
        },
        [&](hcamem::pool& /*pool*/) {
            buffers->put_n(taken);
            buffers.reset();
        });
}

/// As many buffers as have room in a slab, if the pool can be made with so many.
double usable() {
    constexpr std::uint64_t slab = HCAMEM_SLAB_UNIT;
    constexpr std::size_t count = slab / kernel_page;
    hcamem::buffer_pool buffers(make_pool(slab, slab), kernel_page, count);
    std::vector<void*> taken;
    while (void* const buffer = buffers.get()) {
        taken.push_back(buffer);
    }
    const double share = static_cast<double>(taken.size()) / count;
    buffers.put_n(taken);
    return share;
}

} // namespace

std::vector<figure> measure_fixed() {
    return {{"bookkeeping bytes / slab bytes, 4 KiB fixed buffers", bookkeeping()},
            {"share of a slab usable as 4 KiB fixed buffers", usable()}};
}

} // namespace bench
