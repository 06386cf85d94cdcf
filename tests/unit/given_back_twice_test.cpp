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

class GivenBackTwice : public testing::TestWithParam<std::size_t> {
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

    cached_block take() {
        cached_block taken{};
        const void* twice = nullptr;
        EXPECT_EQ(arenas_.take(0, kind(), &taken, 1, twice), 1U);
        EXPECT_EQ(twice, nullptr);
        block_states::set_live(taken);
        return taken;
    }
    const void* put(const cached_block& freed) { return arenas_.put(kind(), &freed, 1).twice; }
    static std::size_t kind() { return class_of(GetParam()); }

    mapping range_;
    block_states states_;
    page_heap pages_;
    arenas arenas_;
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

} // namespace
