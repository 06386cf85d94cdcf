// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// How many blocks are live, asked while a span goes from arena to arena.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

#include "heap/arenas.h"
#include "heap/block_states.h"
#include "heap/page_heap.h"
#include "os/mapping.h"

namespace {

using namespace hcamem::core;

cached_block take(arenas& from, std::size_t arena, std::size_t kind) {
    cached_block taken{};
    const void* twice = nullptr;
    EXPECT_EQ(from.take(arena, kind, &taken, 1, twice), 1U);
    return taken;
}

TEST(LiveCount, is_that_of_one_moment_while_a_span_changes_arenas) {
    constexpr std::size_t kind = class_of(4096);
    constexpr std::size_t span_pages = size_classes[kind].span_pages;
    mapping range;
    block_states states;
    page_heap pages;
    arenas all;
    ASSERT_EQ(range.reserve(slab_unit, slab_unit), 0);
    ASSERT_EQ(states.init(range.data(), slab_unit), 0);
    ASSERT_EQ(pages.init(range.data(), slab_unit, states), 0);
    all.init(pages);
    pages.add_slab(0, 1);
    std::uint32_t large = no_page;
    ASSERT_EQ(pages.take_large(pages_per_unit - span_pages, page_bytes, large),
              page_heap::result::done);

    std::atomic<bool> ended{false};
    std::thread mover([&] {
        for (std::size_t round = 0; round < 200'000; ++round) {
            const cached_block first = take(all, 0, kind);
            const cached_block second = take(all, arena_count - 1, kind);
            EXPECT_EQ(all.put(kind, &first, 1).twice, nullptr);
            EXPECT_EQ(all.put(kind, &second, 1).twice, nullptr);
        }
        ended = true;
    });
    std::uint64_t most = 0;
    while (!ended) {
        most = std::max(most, all.live(kind));
    }
    mover.join();
    EXPECT_LE(most, 2U);
    EXPECT_EQ(all.live(kind), 0U);
}

} // namespace
