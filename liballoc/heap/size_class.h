// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Size classes: 64-byte steps up to 512 bytes, then 8 per doubling up to 1 MiB,
// so that rounding up costs at most 1/8 and on average 1/16.
//
//   bytes   64 128 ... 512 | 576 640 ... 1024 | 1152 1280 ... 2048 | ... 1 MiB
//   index    0   1 ...   7 |   8   9 ...   15 |   16   17 ...   23 | ...    95
//
// The blocks of a class lie in spans: runs of pages cut into equal blocks. A
// span begins at a page of `page_bytes`, so a block whose size is a multiple of
// an alignment up to page_bytes is aligned to it. Rounding a size up to a
// multiple of a power of two gives a class that still is one: in each doubling
// either the power divides the step of the classes or the step divides the power.
#ifndef HCAMEM_HEAP_SIZE_CLASS_H
#define HCAMEM_HEAP_SIZE_CLASS_H

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace hcamem::core {

inline constexpr std::size_t page_bytes = 16 << 10; // the heap's page, not the kernel's
inline constexpr std::size_t slab_unit = 2 << 20;   // slabs are multiples of it, aligned to it
inline constexpr std::size_t min_align = 64;
inline constexpr std::size_t largest_class_bytes = 1 << 20;
inline constexpr std::size_t class_count = 8 + 11 * 8;
inline constexpr std::size_t max_blocks_per_span = 256; // free bits of a span: four words

inline constexpr std::size_t pages_of(std::size_t bytes) noexcept {
    return bytes / page_bytes + (bytes % page_bytes != 0 ? 1 : 0);
}

/// Index of the smallest class that holds `bytes`, which is 1 ... largest_class_bytes.
inline constexpr std::size_t class_of(std::size_t bytes) noexcept {
    const std::size_t last = bytes - 1;
    // 10 up to 1024 bytes, where classes are 64 bytes apart. No branch: sizes are mixed.
    const auto width = static_cast<std::size_t>(std::bit_width(last | 512));
    return (width - 10) * 8 + (last >> (width - 4));
}

inline constexpr std::size_t class_bytes(std::size_t index) noexcept {
    if (index < 8) {
        return (index + 1) * 64;
    }
    const std::size_t doubling = (index - 8) / 8;
    return (std::size_t{64} << doubling) * (8 + (index - 8) % 8 + 1);
}

struct size_class {
    std::uint32_t bytes;      // of a block
    std::uint32_t span_pages; // of a span
    std::uint32_t capacity;   // blocks in a span
};

/// The shortest span that wastes at most 1/64 of itself and, for small blocks, holds
/// several of them.
inline constexpr size_class make_size_class(std::size_t index) noexcept {
    const std::size_t bytes = class_bytes(index);
    const std::size_t fewest = bytes <= (8 << 10) ? 8 : 1;
    std::size_t pages = pages_of(fewest * bytes);
    while (pages * page_bytes % bytes * 64 > pages * page_bytes) {
        ++pages;
    }
    std::size_t capacity = pages * page_bytes / bytes;
    return {static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(pages),
            static_cast<std::uint32_t>(capacity)};
}

inline constexpr std::array<size_class, class_count> size_classes = [] {
    std::array<size_class, class_count> all{};
    for (std::size_t index = 0; index < class_count; ++index) {
        all[index] = make_size_class(index);
    }
    return all;
}();

/// How many free blocks of a class a thread keeps at most: fewer of large ones, so that a
/// thread keeps little memory from the others. Where that is very few, twice as many: with
/// random sizes, the fourth part as often one is spilled or refilled.
inline constexpr std::array<std::uint16_t, class_count> cached_blocks = [] {
    constexpr std::size_t cached_bytes = 256 << 10;
    constexpr std::size_t few = 12;
    std::array<std::uint16_t, class_count> all{};
    for (std::size_t index = 0; index < class_count; ++index) {
        const std::size_t blocks = cached_bytes / class_bytes(index);
        const std::size_t twice = 2 * cached_bytes / class_bytes(index);
        all[index] = static_cast<std::uint16_t>(
            std::clamp<std::size_t>(blocks, std::clamp<std::size_t>(twice, 1, few), 128));
    }
    return all;
}();

static_assert(class_bytes(class_count - 1) == largest_class_bytes);
static_assert([] {
    for (std::size_t index = 0; index < class_count; ++index) {
        const size_class& c = size_classes[index];
        if (class_of(c.bytes) != index || c.capacity == 0 || c.capacity > max_blocks_per_span ||
            std::size_t{c.bytes} * c.capacity > c.span_pages * page_bytes ||
            c.span_pages * page_bytes > slab_unit || c.bytes % min_align != 0) {
            return false;
        }
    }
    return true;
}());

} // namespace hcamem::core

#endif
