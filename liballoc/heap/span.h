// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A span is a run of pages with one use. Its descriptor is the one of its first
// page in a table with an entry per page of the reserved range: one cache line that
// holds all there is to know about the span, 64 bytes for 16 KiB or more.
//
//   pages   | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | ...
//   spans   | blocks    | free  | large         |
//   first   | 0   0   0 | 3   3 | 5   -   -   5 |
#ifndef HCAMEM_HEAP_SPAN_H
#define HCAMEM_HEAP_SPAN_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/size_class.h"

namespace hcamem::core {

enum class span_kind : std::uint8_t {
    none,   // not the first page of a span
    free,   // in the page heap
    blocks, // cut into the blocks of a size class
    large,  // one block
};

/// What a thread may ask about a span without a lock. The answer is exact for a span
/// that holds a live block; else it must be asked again under the lock that guards it.
struct alignas(8) span_head {
    span_kind kind = span_kind::none;
    std::uint8_t class_index = 0;
    std::uint16_t arena = 0;
    std::uint32_t pages = 0;

    friend bool operator==(const span_head&, const span_head&) = default;
};

/// What came of giving a block back, or of asking about one.
enum class verdict : std::uint8_t { done, foreign, not_a_start, not_live, wrong_size };

inline constexpr std::size_t arena_count = 8; // heap/arenas.h
inline constexpr std::uint32_t no_page = UINT32_MAX;

struct alignas(64) span {
    // Guarded by the page heap's lock while free or large, and by both that and the
    // class's while it turns into blocks or back.
    std::atomic<span_head> head;

    // The rest: the page heap's lock while free, the class's while blocks.
    std::uint32_t next = no_page;     // in the list of free spans of a bin, or of a class's
    std::uint32_t previous = no_page; // spans that have live and free blocks
    std::uint32_t free_blocks = 0;
    std::array<std::uint64_t, max_blocks_per_span / 64> free_bits{}; // one per block; 0: live
};

static_assert(sizeof(span) == 64);
static_assert(std::atomic<span_head>::is_always_lock_free && sizeof(span_head) == 8);

} // namespace hcamem::core

#endif
