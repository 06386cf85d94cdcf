// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A pool at its maximum: fail at once, or wait for a free.
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/pools.hpp"

namespace {

using namespace unit;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

hcamem_options small() {
    hcamem_options options = test_options();
    options.maximum = 4 * MiB;
    return options;
}

std::vector<void*> take_all(hcamem_pool* pool, std::size_t size) {
    std::vector<void*> blocks;
    while (void* block = hcamem_alloc(pool, size, 0, 0)) {
        blocks.push_back(block);
    }
    EXPECT_EQ(errno, ENOMEM);
    return blocks;
}

TEST(Exhaustion, the_message_names_the_limit_its_value_and_the_remedy) {
    const pool_ptr pool = make_pool(small());
    take_all(pool.get(), MiB);
    const std::string message = hcamem_last_message();
    EXPECT_NE(message.find("maximum"), std::string::npos) << message;
    EXPECT_NE(message.find("4 MiB"), std::string::npos) << message;
    EXPECT_NE(message.find("HCAMEM_MAXIMUM"), std::string::npos) << message;
}

TEST(Exhaustion, all_blocks_can_be_out_and_come_back_for_other_sizes) {
    const pool_ptr pool = make_pool(small());
    for (const std::size_t size :
         {std::size_t{64}, 4 * KiB, 48 * KiB, MiB, 2 * MiB, std::size_t{100}, 13 * KiB}) {
        const std::vector<void*> blocks = take_all(pool.get(), size);
        EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
        // At most 1/64 of a span is lost to its end, and of a slab what no span fits into.
        const std::size_t usable = hcamem_usable(pool.get(), blocks[0]);
        EXPECT_GE(blocks.size() * usable, 4 * MiB * 95 / 100) << size;
        EXPECT_EQ(hcamem_free_n(pool.get(), blocks.data(), blocks.size()), 0);
    }
}

TEST(Exhaustion, a_wait_ends_when_a_block_is_freed) {
    for (const std::size_t size : {4 * KiB, 2 * MiB}) {
        const pool_ptr pool = make_pool(small());
        std::vector<void*> blocks = take_all(pool.get(), size);
        std::thread freer([&] {
            std::this_thread::sleep_for(milliseconds(20));
            hcamem_free(pool.get(), blocks.back());
        });
        EXPECT_EQ(hcamem_alloc(pool.get(), size, 0, -1), blocks.back());
        freer.join();
    }
}

TEST(Exhaustion, a_wait_for_another_size_ends_when_enough_was_freed) {
    const pool_ptr pool = make_pool(small());
    const std::vector<void*> blocks = take_all(pool.get(), 4 * KiB);
    std::thread freer([&] { hcamem_free_n(pool.get(), blocks.data(), blocks.size()); });
    EXPECT_NE(hcamem_alloc(pool.get(), 2 * MiB, 0, -1), nullptr) << hcamem_last_message();
    freer.join();
}

TEST(Exhaustion, a_wait_ends_with_ETIMEDOUT_and_not_before_its_time) {
    const pool_ptr pool = make_pool(small());
    take_all(pool.get(), MiB);
    const auto begin = steady_clock::now();
    EXPECT_EQ(hcamem_alloc(pool.get(), MiB, 0, 30), nullptr);
    EXPECT_EQ(errno, ETIMEDOUT);
    EXPECT_GE(steady_clock::now() - begin, milliseconds(30));
    const std::string message = hcamem_last_message();
    EXPECT_NE(message.find("30 ms"), std::string::npos) << message;
    EXPECT_NE(message.find("maximum"), std::string::npos) << message;
}

TEST(Exhaustion, every_waiter_gets_its_block) {
    const pool_ptr pool = make_pool(small());
    const std::vector<void*> blocks = take_all(pool.get(), 64 * KiB);
    std::vector<std::thread> waiters;
    for (int index = 0; index < 4; ++index) {
        waiters.emplace_back([&] {
            for (int count = 0; count < 200; ++count) {
                void* block = hcamem_alloc(pool.get(), 64 * KiB, 0, -1);
                ASSERT_NE(block, nullptr) << hcamem_last_message();
                ASSERT_EQ(hcamem_free(pool.get(), block), 0);
            }
        });
    }
    ASSERT_EQ(hcamem_free(pool.get(), blocks[0]), 0); // one block for all of them
    for (std::thread& waiter : waiters) {
        waiter.join();
    }
}

TEST(Exhaustion, closing_ends_a_wait) {
    hcamem_pool* const pool = make_pool(small()).release();
    std::vector<void*> blocks = take_all(pool, MiB);
    std::thread closer([&] {
        std::this_thread::sleep_for(milliseconds(20));
        EXPECT_EQ(hcamem_pool_close(pool), -EBUSY);
    });
    EXPECT_EQ(hcamem_alloc(pool, MiB, 0, -1), nullptr);
    EXPECT_EQ(errno, EBADF);
    closer.join();
    EXPECT_EQ(hcamem_free_n(pool, blocks.data(), blocks.size()), 0);
}

TEST(Exhaustion, other_negative_timeouts_are_refused) {
    const pool_ptr pool = make_pool(small());
    EXPECT_EQ(hcamem_alloc(pool.get(), 64, 0, -2), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

} // namespace
