// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Which of a thread's caches is that of a size class: as the distance in bytes from the
// first one, so that the fast path need not scale an index.
#ifndef HCAMEM_HEAP_CLASS_CACHE_H
#define HCAMEM_HEAP_CLASS_CACHE_H

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <hcamem/detail/block_cache.hpp>

#include "heap/size_class.h"

namespace hcamem::core {

using detail::block_cache;

using cache_offset = std::uint16_t;

inline constexpr cache_offset cache_offset_of(std::size_t class_index) noexcept {
    return static_cast<cache_offset>(class_index * sizeof(block_cache));
}
inline constexpr std::size_t class_at(cache_offset offset) noexcept {
    return offset / sizeof(block_cache);
}
inline block_cache& cache_at(block_cache* first, cache_offset offset) noexcept {
    return *reinterpret_cast<block_cache*>(reinterpret_cast<std::byte*>(first) + offset);
}

static_assert(class_at(cache_offset_of(class_count - 1)) == class_count - 1);

/// The smallest class's that holds `bytes`, which is 1 ... quick_bytes, from a table.
inline constexpr std::size_t quick_bytes = 64 << 10;
inline constexpr std::array<cache_offset, quick_bytes / min_align> quick_offsets = [] {
    std::array<cache_offset, quick_bytes / min_align> all{};
    for (std::size_t step = 0; step < all.size(); ++step) {
        all[step] = cache_offset_of(class_of((step + 1) * min_align));
    }
    return all;
}();
inline cache_offset quick_cache_offset(std::size_t bytes) noexcept {
    return quick_offsets[(bytes - 1) / min_align];
}

/// The same for any size and alignment for which there are classes; false: there are none.
inline bool find_cache_offset(std::size_t bytes, std::size_t align, cache_offset& found) noexcept {
    if (bytes - 1 >= largest_class_bytes || align > page_bytes || (align & (align - 1)) != 0) {
        return false;
    }
    const std::size_t step = std::max(align, min_align);
    found = cache_offset_of(class_of((bytes + step - 1) & ~(step - 1)));
    return true;
}
static_assert(largest_class_bytes % page_bytes == 0);

} // namespace hcamem::core

#endif
