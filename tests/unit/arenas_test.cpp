// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Which spans a thread's blocks come from.
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "heap/size_class.h"
#include "support/blocks.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

std::set<std::uintptr_t> pages_of(const std::vector<void*>& blocks) {
    std::set<std::uintptr_t> pages;
    for (const void* block : blocks) {
        pages.insert(reinterpret_cast<std::uintptr_t>(block) / hcamem::core::page_bytes);
    }
    return pages;
}

class Arenas : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, Arenas, testing::Values(64, 1000, 4096, 20'000));

TEST_P(Arenas, two_threads_have_pages_of_their_own) {
    const pool_ptr pool = make_pool(test_options());
    constexpr std::size_t count = 40;
    const std::vector<void*> mine = allocate_all(pool.get(), GetParam(), count);
    std::vector<void*> others;
    std::thread([&] { others = allocate_all(pool.get(), GetParam(), count); }).join();
    ASSERT_EQ(mine.size(), count);
    ASSERT_EQ(others.size(), count);
    for (const std::uintptr_t page : pages_of(others)) {
        EXPECT_EQ(pages_of(mine).count(page), 0U) << "blocks of two threads share a page";
    }
    free_all(pool.get(), mine);
    free_all(pool.get(), others);
}

TEST_P(Arenas, a_thread_has_what_is_free_in_spans_of_others) {
    hcamem_options options = test_options();
    options.maximum = 2 * MiB;
    const pool_ptr pool = make_pool(options);
    std::vector<void*> mine = allocate_all(pool.get(), GetParam(), 1);
    const std::size_t count = 2 * MiB / GetParam();
    std::vector<void*> others;
    std::thread([&] {
        others = allocate_all(pool.get(), GetParam(), count);
        // Every other one, so that no span gets free.
        for (std::size_t index = 0; index < others.size(); ++index) {
            EXPECT_EQ(hcamem_free(pool.get(), others[index]), 0);
            others.erase(others.begin() + static_cast<std::ptrdiff_t>(index));
        }
    }).join();
    const std::size_t have = mine.size() + others.size();
    const std::vector<void*> rest = allocate_all(pool.get(), GetParam(), count);
    EXPECT_GE(rest.size(), others.size()) << "of " << have << " live ones before";
    EXPECT_EQ(stats_of(pool.get()).live_blocks, have + rest.size());
    free_all(pool.get(), mine);
    free_all(pool.get(), others);
    free_all(pool.get(), rest);
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 0U);
}

} // namespace
