// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <cstddef>
#include <vector>

#include <hcamem/pool.hpp>

#include "memory/figures.hpp"
#include "memory/outside_slabs.hpp"
#include "patterns/touch.hpp"

namespace bench {
namespace {

constexpr std::size_t buffers = 65536; // 256 MiB
} // namespace

std::vector<figure> measure_bookkeeping() {
    std::vector<void*> taken(buffers); // written here, so present before it is measured
    const double share = share_outside_slabs(
        [&](hcamem::pool& pool) {
            for (void*& buffer : taken) {
                buffer = pool.allocate(kernel_page);
            }
        },
        [&](hcamem::pool& pool) { pool.deallocate_n(taken); });
    return {{"bookkeeping bytes / slab bytes, 4 KiB blocks", share}};
}

} // namespace bench
