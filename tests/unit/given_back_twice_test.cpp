// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Two threads that free one block in the same instant both have it in their caches. What the
// heap behind the caches makes of it, in an order that no test of threads could be sure of.
#include <array>
#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>

#include "heap/arenas.h"
#include "heap/block_states.h"
#include "heap/page_heap.h"
#include "os/mapping.h"

namespace {

using namespace hcamem::core;

class Heaps : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(range_.reserve(slab_unit, slab_unit), 0);
        ASSERT_EQ(states_.init(range_.data(), slab_unit), 0);
        ASSERT_EQ(pages_.init(range_.data(), slab_unit, states_), 0);
        arenas_.init(pages_);
        pages_.add_slab(0, 1);
    }
    void TearDown() override {
        pages_.reset();
        states_.reset();
    }

    cached_block take(std::size_t of) {
        cached_block taken{};
        const void* twice = nullptr;
        EXPECT_EQ(arenas_.take(0, of, &taken, 1, twice), 1U);
        EXPECT_EQ(twice, nullptr);
        block_states::set_live(taken);
        return taken;
    }
    const void* put(std::size_t of, const cached_block& freed) {
        return arenas_.put(of, &freed, 1).twice;
    }

    mapping range_;
    block_states states_;
    page_heap pages_;
    arenas arenas_;
};

class GivenBackTwice : public Heaps, public testing::WithParamInterface<std::size_t> {
  protected:
    cached_block take() { return Heaps::take(kind()); }
    const void* put(const cached_block& freed) { return Heaps::put(kind(), freed); }
    static std::size_t kind() { return class_of(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Bytes, GivenBackTwice, testing::Values(64, 1000, 4096, 65536));

TEST_P(GivenBackTwice, by_both_caches_counts_once) {
    const cached_block block = take();
    block.state->store(0); // by both threads
    EXPECT_EQ(put(block), nullptr);
    EXPECT_EQ(put(block), block.block);
    EXPECT_EQ(arenas_.live(kind()), 0U);
}

TEST_P(GivenBackTwice, by_the_second_cache_while_it_is_out_again_counts_once) {
    const cached_block block = take();
    block.state->store(0);
    EXPECT_EQ(put(block), nullptr);
    ASSERT_EQ(take().block, block.block);
    EXPECT_EQ(put(block), block.block);
    EXPECT_EQ(arenas_.live(kind()), 1U);
    EXPECT_NE(take().block, block.block);
}

TEST_P(GivenBackTwice, by_the_second_cache_and_got_out_of_a_third_one_is_not_given_out_again) {
    const cached_block block = take();
    block.state->store(0);
    EXPECT_EQ(put(block), nullptr);
    ASSERT_EQ(take().block, block.block);
    block.state->store(0); // in the third cache
    EXPECT_EQ(put(block), nullptr) << "nobody can tell yet";
    block_states::set_live(block);
    std::array<cached_block, 2> taken{};
    const void* twice = nullptr;
    ASSERT_EQ(arenas_.take(0, kind(), taken.data(), taken.size(), twice), 2U);
    EXPECT_EQ(twice, block.block);
    EXPECT_NE(taken[0].block, block.block);
    EXPECT_NE(taken[1].block, block.block);
    EXPECT_EQ(arenas_.live(kind()), 3U);
}

TEST_F(Heaps, a_block_given_back_twice_is_not_looked_for_in_a_large_one) {
    constexpr std::size_t kind = 0; // what the head of a large block has for its class
    std::uint32_t large = no_page;
    ASSERT_EQ(pages_.take_large(pages_per_unit - 1, page_bytes, large), page_heap::result::done);
    const cached_block block = take(kind);
    ASSERT_EQ(pages_.offset_of(block.block), slab_unit - page_bytes);
    block.state->store(0); // by both threads
    EXPECT_EQ(put(kind, block), nullptr);
    arenas_.release_idle();
    bool drains = false;
    ASSERT_EQ(pages_.put_large(large, 0, drains), verdict::done);
    ASSERT_EQ(pages_.take_large(pages_per_unit, page_bytes, large), page_heap::result::done);

    EXPECT_EQ(put(kind, block), block.block);
    EXPECT_EQ(arenas_.live(kind), 0U);
}

// A class whose blocks begin elsewhere when its span begins a page earlier.
TEST_F(Heaps, a_block_given_back_twice_does_not_free_the_one_that_covers_it_now) {
    constexpr std::size_t kind = class_of(page_bytes + page_bytes / 8);
    static_assert(size_classes[kind].bytes == page_bytes + page_bytes / 8);
    static_assert(size_classes[kind].capacity > 1);
    constexpr std::size_t one_page = class_of(page_bytes);
    const cached_block before = take(one_page);
    const cached_block block = take(kind);
    ASSERT_EQ(pages_.offset_of(block.block), page_bytes);
    block.state->store(0); // by both threads
    EXPECT_EQ(put(kind, block), nullptr);
    before.state->store(0);
    EXPECT_EQ(put(one_page, before), nullptr);
    arenas_.release_idle();

    const cached_block covers = take(kind);
    ASSERT_EQ(pages_.offset_of(covers.block), 0U);
    EXPECT_EQ(put(kind, block), block.block);
    EXPECT_EQ(arenas_.live(kind), 1U);
    EXPECT_NE(take(kind).block, covers.block);
}

} // namespace
