// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What helps to find a program's faults: poison, reports of what is live and from where.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/pools.hpp"

namespace {

using namespace unit;

pool_ptr pool_with(std::uint32_t flags) {
    hcamem_options options = test_options();
    options.flags = flags;
    return make_pool(options);
}

constexpr std::size_t sizes[] = {64, 5000, 300 * KiB, 3 * MiB}; // all kinds of block

TEST(Poison, what_is_free_is_full_of_it_and_may_be_used_again_if_it_still_is) {
    const pool_ptr pool = pool_with(HCAMEM_OPT_POISON);
    for (const std::size_t size : sizes) {
        for (int round = 0; round < 3; ++round) {
            auto* block = static_cast<unsigned char*>(hcamem_alloc(pool.get(), size, 0, 0));
            ASSERT_NE(block, nullptr);
            EXPECT_EQ(block[0], 0xdb);
            EXPECT_EQ(block[size - 1], 0xdb);
            std::memset(block, 0, size);
            EXPECT_EQ(hcamem_free(pool.get(), block), 0);
        }
    }
}

// Not with AddressSanitizer, which finds the write itself.
#if !defined(__SANITIZE_ADDRESS__)
TEST(PoisonDeathTest, a_write_to_a_free_block_is_found_when_it_is_handed_out) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    for (const std::size_t size : sizes) {
        const std::size_t where = size - 3;
        EXPECT_DEATH(
            {
                const pool_ptr pool = pool_with(HCAMEM_OPT_POISON);
                auto* block = static_cast<char*>(hcamem_alloc(pool.get(), size, 0, 0));
                hcamem_free(pool.get(), block);
                block[where] = 0;
                while (hcamem_alloc(pool.get(), size, 0, 0) != nullptr) {
                }
            },
            "written to while it was free, first at byte " + std::to_string(where));
    }
}

TEST(Poison, where_misuse_is_an_error_the_block_is_handed_out_and_the_message_says_so) {
    const pool_ptr pool = pool_with(HCAMEM_OPT_POISON | HCAMEM_OPT_MISUSE_ERROR);
    auto* block = static_cast<char*>(hcamem_alloc(pool.get(), 64, 0, 0));
    ASSERT_EQ(hcamem_free(pool.get(), block), 0);
    block[7] = 0;
    bool found = false;
    std::vector<void*> all;
    for (int count = 0; count < 10'000; ++count) {
        all.push_back(hcamem_alloc(pool.get(), 64, 0, 0));
        found = found || std::strstr(hcamem_last_message(), "first at byte 7") != nullptr;
    }
    EXPECT_TRUE(found);
    EXPECT_EQ(hcamem_free_n(pool.get(), all.data(), all.size()), 0);
}

TEST(PoisonDeathTest, holds_for_buffers_of_one_size) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_DEATH(
        {
            const pool_ptr pool = pool_with(HCAMEM_OPT_POISON);
            hcamem_fixed* fixed = hcamem_fixed_create(pool.get(), 4096, 0, 10, 0);
            auto* buffer = static_cast<char*>(hcamem_fixed_get(fixed, 0));
            hcamem_fixed_put(fixed, buffer);
            buffer[100] = 1;
            while (hcamem_fixed_get(fixed, 0) != nullptr) {
            }
        },
        "written to while it was free, first at byte 100");
}
#endif

TEST(Leaks, are_reported_by_size) {
    const pool_ptr pool = pool_with(HCAMEM_OPT_LEAKS);
    std::vector<void*> live;
    for (const std::size_t size : {64U, 64U, 64U, 4096U, 3U << 20}) {
        live.push_back(hcamem_alloc(pool.get(), size, 0, 0));
    }
    // Freed, but in this thread's cache.
    hcamem_free(pool.get(), hcamem_alloc(pool.get(), 512, 0, 0));
    testing::internal::CaptureStderr();
    EXPECT_EQ(hcamem_pool_close(pool.get()), -EBUSY);
    const std::string report = testing::internal::GetCapturedStderr();
    EXPECT_NE(report.find("while 5 blocks are live"), std::string::npos) << report;
    EXPECT_NE(report.find("  3 x 64 bytes"), std::string::npos) << report;
    EXPECT_NE(report.find("  1 x 4 KiB"), std::string::npos) << report;
    EXPECT_NE(report.find("  1 larger ones, together 3 MiB"), std::string::npos) << report;
    EXPECT_EQ(report.find("512"), std::string::npos) << report;
    for (void* block : live) {
        EXPECT_EQ(hcamem_free(pool.get(), block), 0);
    }
}

TEST(Leaks, are_not_reported_unasked_and_not_where_there_are_none) {
    for (const std::uint32_t flags : {std::uint32_t{0}, std::uint32_t{HCAMEM_OPT_LEAKS}}) {
        pool_ptr pool = pool_with(flags);
        void* block = hcamem_alloc(pool.get(), 64, 0, 0);
        testing::internal::CaptureStderr();
        if (flags != 0) {
            hcamem_free(pool.get(), block);
            EXPECT_EQ(hcamem_pool_close(pool.release()), 0);
        } else {
            EXPECT_EQ(hcamem_pool_close(pool.get()), -EBUSY);
            hcamem_free(pool.release(), block);
        }
        EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    }
}

[[gnu::noinline]] void* from_here(hcamem_pool* pool) {
    void* volatile block = hcamem_alloc(pool, 4096, 0, 0);
    return block;
}

TEST(Leaks, are_reported_with_the_stacks_that_allocated_them) {
    const pool_ptr pool = pool_with(HCAMEM_OPT_LEAK_STACKS);
    hcamem_free(pool.get(), from_here(pool.get())); // the first one takes another way inside
    std::array<void*, 8> live{};
    for (std::size_t index = 0; index < 7; ++index) {
        live[index] = from_here(pool.get());
    }
    live[7] = hcamem_alloc(pool.get(), 100, 0, 0);
    testing::internal::CaptureStderr();
    EXPECT_EQ(hcamem_pool_close(pool.get()), -EBUSY);
    const std::string report = testing::internal::GetCapturedStderr();
    const std::size_t first = report.find("7 blocks, 28 KiB, allocated at");
    const std::size_t second = report.find("1 blocks, 128 bytes, allocated at");
    ASSERT_NE(first, std::string::npos) << report;
    ASSERT_NE(second, std::string::npos) << report;
    EXPECT_LT(first, second) << "not the most bytes first\n" << report;
    EXPECT_NE(report.find("unit_tests", first), std::string::npos) << report;
    for (void* block : live) {
        EXPECT_EQ(hcamem_free(pool.get(), block), 0);
    }
}

TEST(Leaks, of_a_buffer_pool_are_reported) {
    const pool_ptr pool = pool_with(HCAMEM_OPT_LEAK_STACKS);
    hcamem_fixed* const fixed = hcamem_fixed_create(pool.get(), 4096, 0, 10, 0);
    void* const buffer = hcamem_fixed_get(fixed, 0);
    testing::internal::CaptureStderr();
    EXPECT_EQ(hcamem_fixed_destroy(fixed), -EBUSY);
    const std::string report = testing::internal::GetCapturedStderr();
    EXPECT_NE(report.find("1 of 10 buffers of 4096 bytes are out"), std::string::npos) << report;
    EXPECT_NE(report.find("allocated at"), std::string::npos) << report;
    hcamem_fixed_put(fixed, buffer);
}

} // namespace
