// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What a block is: size, alignment, place.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "support/pools.hpp"

namespace {

using namespace unit;

std::uintptr_t number(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address);
}

class Allocation : public EachMapping {};
INSTANTIATE_EACH_MAPPING(Allocation);

std::vector<std::size_t> interesting_sizes() {
    std::vector<std::size_t> sizes;
    for (std::size_t power = 1; power <= 8 * MiB; power *= 2) {
        for (const std::size_t size : {power - 1, power, power + 1, power + power / 2}) {
            sizes.push_back(size);
        }
    }
    return sizes;
}

TEST_P(Allocation, gives_blocks_of_any_size_that_can_be_written_to_the_last_usable_byte) {
    const pool_ptr pool = make_pool(options());
    for (const std::size_t size : interesting_sizes()) {
        void* block = hcamem_alloc(pool.get(), size, 0, 0);
        ASSERT_NE(block, nullptr) << size << ": " << hcamem_last_message();
        const std::size_t usable = hcamem_usable(pool.get(), block);
        EXPECT_GE(usable, size);
        std::memset(block, 0x5a, usable);
        EXPECT_EQ(hcamem_free(pool.get(), block), 0) << hcamem_last_message();
    }
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 0U);
}

TEST_P(Allocation, wastes_at_most_an_eighth_above_512_bytes) {
    const pool_ptr pool = make_pool(options());
    for (std::size_t size = 513; size <= MiB; size += 1021) {
        void* block = hcamem_alloc(pool.get(), size, 0, 0);
        ASSERT_NE(block, nullptr);
        EXPECT_LE(hcamem_usable(pool.get(), block), size + size / 8 + 64) << size;
        hcamem_free(pool.get(), block);
    }
}

TEST_P(Allocation, aligns_to_every_power_of_two_up_to_2_MiB) {
    const pool_ptr pool = make_pool(options());
    for (std::size_t align = 1; align <= HCAMEM_SLAB_UNIT; align *= 2) {
        std::vector<void*> blocks;
        for (const std::size_t size :
             {std::size_t{1}, align / 2 + 1, align, align + 1, 3 * align}) {
            void* block = hcamem_alloc(pool.get(), size, align, 0);
            ASSERT_NE(block, nullptr) << size << " at " << align << hcamem_last_message();
            EXPECT_EQ(number(block) % std::max<std::size_t>(align, 64), 0U) << size << align;
            EXPECT_GE(hcamem_usable(pool.get(), block), size);
            EXPECT_EQ(hcamem_free_sized(pool.get(), block, size, align), 0)
                << hcamem_last_message();
        }
    }
}

TEST_P(Allocation, aligns_to_64_if_nothing_is_said) {
    const pool_ptr pool = make_pool(options());
    for (std::size_t size = 1; size < 5000; size += 97) {
        void* block = hcamem_alloc(pool.get(), size, 0, 0);
        EXPECT_EQ(number(block) % 64, 0U);
    }
}

TEST_P(Allocation, refuses_alignments_that_are_no_power_of_two_or_too_large) {
    const pool_ptr pool = make_pool(options());
    for (const std::size_t align :
         {std::size_t{3}, std::size_t{48}, std::size_t{65}, std::size_t{6000}, 2 * HCAMEM_SLAB_UNIT,
          SIZE_MAX, SIZE_MAX / 2 + 1}) {
        errno = 0;
        EXPECT_EQ(hcamem_alloc(pool.get(), 64, align, 0), nullptr);
        EXPECT_EQ(errno, EINVAL);
        EXPECT_STRNE(hcamem_last_message(), "");
    }
    EXPECT_EQ(stats_of(pool.get()).slabs, 0U);
}

TEST_P(Allocation, refuses_sizes_that_overflow_or_never_fit_whatever_the_wait) {
    const pool_ptr pool = make_pool(options());
    for (const std::size_t size : {64 * MiB + 1, SIZE_MAX, SIZE_MAX - 62, SIZE_MAX / 2,
                                   std::size_t{1} << 63, (std::size_t{1} << 63) + 1}) {
        errno = 0;
        EXPECT_EQ(hcamem_alloc(pool.get(), size, 0, -1), nullptr);
        EXPECT_EQ(errno, ENOMEM);
        errno = 0;
        EXPECT_EQ(hcamem_alloc(pool.get(), size, HCAMEM_SLAB_UNIT, -1), nullptr);
        EXPECT_EQ(errno, ENOMEM);
        std::array<void*, 3> blocks{};
        EXPECT_EQ(hcamem_alloc_n(pool.get(), size, blocks.data(), blocks.size()), -ENOMEM);
    }
    void* block = nullptr;
    EXPECT_EQ(hcamem_alloc_n(pool.get(), 64, &block, SIZE_MAX), -ENOMEM);
    EXPECT_EQ(stats_of(pool.get()).slabs, 0U);
}

TEST_P(Allocation, gives_a_block_of_its_own_for_zero_bytes) {
    const pool_ptr pool = make_pool(options());
    void* one = hcamem_alloc(pool.get(), 0, 0, 0);
    void* other = hcamem_alloc(pool.get(), 0, 0, 0);
    ASSERT_NE(one, nullptr);
    EXPECT_NE(one, other);
    EXPECT_EQ(hcamem_usable(pool.get(), one), 64U);
    EXPECT_EQ(hcamem_free_sized(pool.get(), one, 0, 0), 0);
    EXPECT_EQ(hcamem_free(pool.get(), other), 0);
}

TEST_P(Allocation, every_pointer_lies_in_a_slab_and_no_block_in_two) {
    const pool_ptr pool = make_pool(options());
    std::vector<std::pair<std::uintptr_t, std::size_t>> blocks;
    for (const std::size_t size : {std::size_t{64}, std::size_t{3000}, 48 * KiB, 900 * KiB, MiB + 1,
                                   1536 * KiB, 2 * MiB, 3 * MiB}) {
        for (int count = 0; count < 3; ++count) {
            void* block = hcamem_alloc(pool.get(), size, 0, 0);
            ASSERT_NE(block, nullptr) << hcamem_last_message();
            const std::size_t usable = hcamem_usable(pool.get(), block);
            EXPECT_TRUE(hcamem_owns(pool.get(), block));
            EXPECT_TRUE(hcamem_owns(pool.get(), static_cast<char*>(block) + usable - 1));
            blocks.emplace_back(number(block), usable);
        }
    }
    std::sort(blocks.begin(), blocks.end());
    for (std::size_t index = 1; index < blocks.size(); ++index) {
        EXPECT_LE(blocks[index - 1].first + blocks[index - 1].second, blocks[index].first)
            << "blocks overlap";
    }
}

TEST_P(Allocation, does_not_own_what_is_not_in_a_slab) {
    const pool_ptr pool = make_pool(options());
    void* block = hcamem_alloc(pool.get(), 64, 0, 0);
    const int on_stack = 0;
    EXPECT_FALSE(hcamem_owns(pool.get(), &on_stack));
    EXPECT_FALSE(hcamem_owns(pool.get(), nullptr));
    EXPECT_EQ(hcamem_usable(pool.get(), &on_stack), 0U);
    EXPECT_EQ(hcamem_usable(pool.get(), nullptr), 0U);
    EXPECT_EQ(hcamem_usable(pool.get(), static_cast<char*>(block) + 8), 0U);
    hcamem_free(pool.get(), block);
    EXPECT_EQ(hcamem_usable(pool.get(), block), 0U) << "not live any more";
    EXPECT_TRUE(hcamem_owns(pool.get(), block)) << "but still in a slab";
}

TEST_P(Allocation, R15_no_page_is_shared_by_two_pools_or_by_a_pool_and_the_heap) {
    const pool_ptr one = make_pool(options());
    const pool_ptr other = make_pool(options());
    std::set<std::uintptr_t> pages_of_one;
    std::set<std::uintptr_t> pages_of_other;
    std::set<std::uintptr_t> pages_of_heap;
    std::vector<std::vector<char>> heap;
    for (std::size_t size = 1; size < 100000; size += 1237) {
        const auto remember = [&](std::set<std::uintptr_t>& pages, const void* block) {
            ASSERT_NE(block, nullptr);
            for (std::uintptr_t page = number(block) / kernel_page;
                 page <= (number(block) + size - 1) / kernel_page; ++page) {
                pages.insert(page);
            }
        };
        remember(pages_of_one, hcamem_alloc(one.get(), size, 0, 0));
        remember(pages_of_other, hcamem_alloc(other.get(), size, 0, 0));
        heap.emplace_back(size);
        remember(pages_of_heap, heap.back().data());
    }
    for (const std::uintptr_t page : pages_of_one) {
        EXPECT_EQ(pages_of_other.count(page), 0U);
        EXPECT_EQ(pages_of_heap.count(page), 0U);
    }
    for (const std::uintptr_t page : pages_of_other) {
        EXPECT_EQ(pages_of_heap.count(page), 0U);
    }
}

TEST_P(Allocation, a_slab_cut_into_4_KiB_buffers_is_used_to_the_last_byte) {
    hcamem_options chosen = options();
    chosen.maximum = 2 * MiB;
    const pool_ptr pool = make_pool(chosen);
    std::vector<void*> blocks(2 * MiB / (4 * KiB));
    EXPECT_EQ(hcamem_alloc_n(pool.get(), 4 * KiB, blocks.data(), blocks.size()), 0)
        << hcamem_last_message();
    EXPECT_EQ(hcamem_free_n(pool.get(), blocks.data(), blocks.size()), 0);
}

TEST_P(Allocation, the_smallest_pool_gives_a_block_of_all_it_has) {
    hcamem_options chosen = options();
    chosen.maximum = 1; // rounded up to one slab unit
    const pool_ptr pool = make_pool(chosen);
    void* block = hcamem_alloc(pool.get(), 2 * MiB, 0, 0);
    ASSERT_NE(block, nullptr) << hcamem_last_message();
    std::memset(block, 1, 2 * MiB);
    EXPECT_EQ(hcamem_alloc(pool.get(), 1, 0, 0), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(hcamem_free(pool.get(), block), 0);
    EXPECT_NE(hcamem_alloc(pool.get(), 1, 0, 0), nullptr);
}

TEST_P(Allocation, many_at_once_are_all_or_none) {
    hcamem_options chosen = options();
    chosen.maximum = 2 * MiB;
    const pool_ptr pool = make_pool(chosen);
    std::vector<void*> blocks(16, reinterpret_cast<void*>(1));
    ASSERT_EQ(hcamem_alloc_n(pool.get(), 100 * KiB, blocks.data(), 16), 0);
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), 16U);
    std::vector<void*> more(16, nullptr);
    EXPECT_EQ(hcamem_alloc_n(pool.get(), 100 * KiB, more.data(), 16), -ENOMEM);
    EXPECT_EQ(more, std::vector<void*>(16, nullptr));
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 16U);
    EXPECT_EQ(hcamem_free_n(pool.get(), blocks.data(), 16), 0);
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 0U);
    EXPECT_EQ(hcamem_alloc_n(pool.get(), 100, nullptr, 0), 0);
    EXPECT_EQ(hcamem_free_n(pool.get(), nullptr, 0), 0);
}

TEST_P(Allocation, fresh_memory_is_zero) {
    const pool_ptr pool = make_pool(options());
    for (const std::size_t size : {std::size_t{64}, 48 * KiB, 3 * MiB}) {
        const auto* block = static_cast<const char*>(hcamem_alloc(pool.get(), size, 0, 0));
        ASSERT_NE(block, nullptr);
        EXPECT_TRUE(std::all_of(block, block + size, [](char byte) { return byte == 0; }));
    }
}

TEST_P(Allocation, grows_by_an_eighth_from_2_to_64_MiB) {
    hcamem_options chosen = options();
    chosen.maximum = 1 * GiB;
    // Ordinary memory that nobody touches costs nothing, the device's does.
    const std::uint64_t goal = test_source() == HCAMEM_MEMORY ? 704 * MiB : 96 * MiB;
    const pool_ptr pool = make_pool(chosen);
    std::vector<void*> blocks;
    std::uint64_t before = 0;
    std::uint64_t grown = 0;
    while (before < goal) {
        blocks.push_back(hcamem_alloc(pool.get(), MiB, 0, 0));
        ASSERT_NE(blocks.back(), nullptr) << hcamem_last_message();
        const std::uint64_t now = stats_of(pool.get()).slab_bytes;
        if (now == before) {
            continue;
        }
        grown = now - before;
        EXPECT_GE(grown, 2 * MiB);
        EXPECT_GE(grown, std::min<std::uint64_t>(before / 8, 64 * MiB));
        EXPECT_LE(grown, std::min<std::uint64_t>(before / 8 + 2 * MiB, 64 * MiB));
        before = now;
    }
    EXPECT_GE(grown, std::min<std::uint64_t>(goal / 9, 64 * MiB));
    EXPECT_EQ(hcamem_free_n(pool.get(), blocks.data(), blocks.size()), 0);
}

TEST_P(Allocation, prefault_makes_all_pages_present) {
    hcamem_options chosen = options();
    chosen.flags |= HCAMEM_OPT_PREFAULT;
    chosen.initial = 4 * MiB;
    const pool_ptr pool = make_pool(chosen);
    const auto* block = static_cast<const char*>(hcamem_alloc(pool.get(), 2 * MiB, 0, 0));
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(std::all_of(block, block + 2 * MiB, [](char byte) { return byte == 0; }));
}

} // namespace
