// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Growth when the kernel refuses memory.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/mman.h>

#include "support/fake_source.hpp"
#include "support/mapped.hpp"

namespace {

using namespace unit;

TEST(Growth, takes_smaller_slabs_where_large_ones_are_refused) {
    for (const int error : {ENOMEM, EAGAIN, EDQUOT}) {
        fake_limits limits;
        limits.error = error;
        hcamem_options options = test_options();
        options.growth = 32 * MiB;
        const pool_ptr pool = make_pool(options, limits);
        limits.largest_slab = 4 * MiB;
        void* block = hcamem_alloc(pool.get(), 64, 0, 0);
        ASSERT_NE(block, nullptr) << hcamem_last_message();
        EXPECT_EQ(stats_of(pool.get()).slab_bytes, 4 * MiB);
        EXPECT_EQ(limits.refused, 3U);
        EXPECT_EQ(hcamem_alloc(pool.get(), 5 * MiB, 0, 0), nullptr);
        EXPECT_EQ(errno, error) << "the kernel's own word for it";
        EXPECT_NE(std::strstr(hcamem_last_message(), "fake kernel"), nullptr);
    }
}

int grow_four_times() {
    fake_limits limits;
    hcamem_options options = test_options();
    options.growth = 8 * MiB;
    const pool_ptr pool = make_pool(options, limits);
    limits.largest_slab = 4 * MiB;
    testing::internal::CaptureStderr();
    for (int count = 0; count < 4; ++count) {
        if (hcamem_alloc(pool.get(), 3 * MiB, 0, 0) == nullptr) {
            return 1;
        }
    }
    const std::string said = testing::internal::GetCapturedStderr();
    if (std::count(said.begin(), said.end(), '\n') != 1) {
        return 2;
    }
    return said.find("smaller than 8 MiB") != std::string::npos &&
                   said.find("fake kernel") != std::string::npos
               ? 0
               : 3;
}

TEST(GrowthDeath, smaller_slabs_are_told_with_one_warning_and_the_cause) {
    // In a process of its own, in which nobody was warned yet.
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(std::exit(grow_four_times()), testing::ExitedWithCode(0), "");
}

TEST(Growth, other_errors_are_not_tried_again) {
    fake_limits limits;
    limits.error = ENODEV;
    limits.largest_slab = 0;
    hcamem_options options = test_options();
    options.growth = 32 * MiB;
    const pool_ptr pool = make_pool(options, limits);
    EXPECT_EQ(hcamem_alloc(pool.get(), 64, 0, -1), nullptr) << "and no free can help";
    EXPECT_EQ(errno, ENODEV);
    EXPECT_EQ(limits.refused, 1U);
}

TEST(Growth, a_refused_slab_leaves_the_range_reserved_whatever_the_kernel_unmapped) {
    for (const bool unmaps : {false, true}) {
        fake_limits limits;
        const pool_ptr pool = make_pool(test_options(), limits);
        const void* first = hcamem_alloc(pool.get(), 2 * MiB, 0, 0); // where the range begins
        ASSERT_NE(first, nullptr);
        const std::size_t mappings = mapping_count(first, 64 * MiB);
        limits.unmaps = unmaps;
        limits.largest_slab = 0;
        for (int count = 0; count < 3; ++count) {
            ASSERT_EQ(hcamem_alloc(pool.get(), 2 * MiB, 0, 0), nullptr);
            ASSERT_EQ(errno, ENOMEM);
        }
        EXPECT_EQ(mapping_count(first, 64 * MiB), mappings);
        limits.largest_slab = SIZE_MAX;
        for (int count = 0; count < 31; ++count) { // nothing of the maximum was lost
            void* block = hcamem_alloc(pool.get(), 2 * MiB, 0, 0);
            ASSERT_NE(block, nullptr) << count << ": " << hcamem_last_message();
            std::memset(block, 1, 2 * MiB);
        }
    }
}

TEST(Growth, a_mapping_that_took_a_hole_in_the_range_is_left_alone) {
    fake_limits limits;
    void* foreign = nullptr;
    {
        const pool_ptr pool = make_pool(test_options(), limits);
        auto* first = static_cast<char*>(hcamem_alloc(pool.get(), 2 * MiB, 0, 0));
        ASSERT_NE(first, nullptr);
        limits.occupies = true;
        limits.largest_slab = 0;
        ASSERT_EQ(hcamem_alloc(pool.get(), 2 * MiB, 0, 0), nullptr);
        foreign = first + 2 * MiB;
        ASSERT_TRUE(is_accessible(foreign));
        std::memset(foreign, 5, kernel_page);
        limits.largest_slab = SIZE_MAX;
        for (int count = 0; count < 30; ++count) {
            auto* block = static_cast<char*>(hcamem_alloc(pool.get(), 2 * MiB, 0, 0));
            ASSERT_NE(block, nullptr) << hcamem_last_message();
            ASSERT_NE(block, foreign);
            hcamem_free(pool.get(), block);
        }
        EXPECT_FALSE(hcamem_owns(pool.get(), foreign));
        hcamem_free(pool.get(), first);
    }
    ASSERT_TRUE(is_accessible(foreign));
    EXPECT_EQ(static_cast<char*>(foreign)[0], 5);
    munmap(foreign, kernel_page);
}

TEST(Growth, a_wait_ends_when_a_block_is_freed_though_the_kernel_refuses_more) {
    fake_limits limits;
    const pool_ptr pool = make_pool(test_options(), limits);
    void* block = hcamem_alloc(pool.get(), 2 * MiB, 0, 0);
    limits.largest_slab = 0;
    limits.error = EAGAIN;
    EXPECT_EQ(hcamem_alloc(pool.get(), 2 * MiB, 0, 5), nullptr);
    EXPECT_EQ(errno, ETIMEDOUT);
    EXPECT_NE(std::strstr(hcamem_last_message(), "fake kernel"), nullptr) << "and says why";
    std::thread freer([&] { hcamem_free(pool.get(), block); });
    EXPECT_EQ(hcamem_alloc(pool.get(), 2 * MiB, 0, -1), block);
    freer.join();
}

TEST(Growth, an_initial_size_that_is_refused_makes_no_pool) {
    fake_limits limits;
    limits.largest_slab = 0;
    hcamem_options options = test_options();
    options.initial = 2 * MiB;
    EXPECT_THROW(make_pool(options, limits), std::runtime_error);
}

} // namespace
