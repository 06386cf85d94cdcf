// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Any thread, any time.
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "support/fake_registrar.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

void in_threads(std::size_t count, const std::function<void(std::size_t)>& body) {
    std::vector<std::thread> threads;
    for (std::size_t index = 0; index < count; ++index) {
        threads.emplace_back([&, index] { body(index); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

TEST(Threads, zero_byte_requests_in_eight_threads) {
    const pool_ptr pool = make_pool();
    in_threads(8, [&](std::size_t) {
        for (int count = 0; count < 2000; ++count) {
            void* block = hcamem_alloc(pool.get(), 0, 0, 0);
            ASSERT_NE(block, nullptr);
            ASSERT_EQ(hcamem_free(pool.get(), block), 0);
        }
    });
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 0U);
}

TEST(Threads, no_block_is_given_to_two) {
    hcamem_options options = test_options();
    options.maximum = 32 * MiB;
    const pool_ptr pool = make_pool(options);
    in_threads(4, [&](std::size_t index) {
        std::minstd_rand random(static_cast<unsigned>(index) + 1);
        const auto mark = static_cast<unsigned char>(index + 1);
        std::vector<std::pair<unsigned char*, std::size_t>> mine;
        for (int count = 0; count < 3000; ++count) {
            if (mine.size() < 20 && random() % 2 == 0) {
                const std::size_t size = 1 + random() % (random() % 8 == 0 ? 200000 : 3000);
                auto* block = static_cast<unsigned char*>(hcamem_alloc(pool.get(), size, 0, 0));
                ASSERT_NE(block, nullptr) << hcamem_last_message();
                std::memset(block, mark, size);
                mine.emplace_back(block, size);
            } else if (!mine.empty()) {
                std::swap(mine[random() % mine.size()], mine.back());
                const auto [block, size] = mine.back();
                ASSERT_TRUE(std::all_of(block, block + size,
                                        [&](unsigned char byte) { return byte == mark; }));
                ASSERT_EQ(hcamem_free_sized(pool.get(), block, size, 0), 0);
                mine.pop_back();
            }
        }
        for (const auto& [block, size] : mine) {
            ASSERT_EQ(hcamem_free(pool.get(), block), 0);
        }
    });
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 0U);
}

TEST(Threads, blocks_may_be_freed_by_threads_that_never_allocated) {
    const pool_ptr pool = make_pool();
    std::mutex lock;
    std::condition_variable changed;
    std::deque<void*> ring;
    bool done = false;
    std::thread freer([&] {
        for (;;) {
            void* block = nullptr;
            {
                std::unique_lock guard(lock);
                changed.wait(guard, [&] { return !ring.empty() || done; });
                if (ring.empty()) {
                    return;
                }
                block = ring.front();
                ring.pop_front();
            }
            ASSERT_EQ(hcamem_free(pool.get(), block), 0);
        }
    });
    for (std::size_t count = 0; count < 5000; ++count) {
        void* block = hcamem_alloc(pool.get(), 64 + count % 9000, 0, 0);
        ASSERT_NE(block, nullptr);
        const std::lock_guard guard(lock);
        ring.push_back(block);
        changed.notify_one();
    }
    {
        const std::lock_guard guard(lock);
        done = true;
        changed.notify_one();
    }
    freer.join();
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 0U);
}

/// How many of two threads that free the block at the same moment are told that it is well.
int free_twice_at_once(hcamem_pool* pool, void* block) {
    std::atomic<int> good{0};
    std::atomic<int> ready{0};
    in_threads(2, [&](std::size_t) {
        ++ready;
        while (ready != 2) {
        }
        good += hcamem_free(pool, block) == 0 ? 1 : 0;
    });
    return good;
}

TEST(Threads, a_large_block_can_be_freed_once_by_two_threads_at_once) {
    const pool_ptr pool = make_pool();
    for (int count = 0; count < 300; ++count) {
        ASSERT_EQ(free_twice_at_once(pool.get(), hcamem_alloc(pool.get(), 2 * MiB, 0, 0)), 1);
    }
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 0U);
}

// Their caches then both have it, but nobody ever gets it while it is another's.
TEST(Threads, a_block_that_two_threads_free_at_once_is_given_to_one) {
    hcamem_options options = test_options();
    options.maximum = 2 * MiB;
    const pool_ptr pool = make_pool(options);
    for (int count = 0; count < 300; ++count) {
        const int good = free_twice_at_once(pool.get(), hcamem_alloc(pool.get(), 64 * KiB, 0, 0));
        ASSERT_TRUE(good == 1 || good == 2);
        std::vector<void*> all;
        while (void* block = hcamem_alloc(pool.get(), 64 * KiB, 0, 0)) {
            all.push_back(block);
        }
        ASSERT_EQ(all.size(), 32U);
        std::sort(all.begin(), all.end());
        ASSERT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
        for (void* block : all) {
            ASSERT_EQ(hcamem_free(pool.get(), block), 0);
        }
    }
}

TEST(Threads, growth_trim_and_keys_go_on_side_by_side) {
    hcamem_options options = test_options();
    options.maximum = 128 * MiB;
    const pool_ptr pool = make_pool(options);
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool.get(), domain, &binding), 0);
    std::atomic<int> working{3};
    struct at_work {
        std::atomic<int>& count;
        ~at_work() { --count; }
    };
    in_threads(4, [&](std::size_t index) {
        if (index == 3) {
            while (working != 0) {
                hcamem_trim(pool.get(), 0);
                stats_of(pool.get());
            }
            return;
        }
        const at_work until_it_ends{working};
        std::minstd_rand random(static_cast<unsigned>(index) + 1);
        for (int count = 0; count < 300; ++count) {
            std::array<std::pair<void*, std::size_t>, 8> mine{};
            for (auto& [block, size] : mine) {
                size = 1 + random() % (3 * MiB);
                block = hcamem_alloc(pool.get(), size, 0, 0);
                ASSERT_NE(block, nullptr) << hcamem_last_message();
                const auto* last = static_cast<char*>(block) + size - 1;
                const std::uint32_t key = hcamem_lkey(binding, block);
                ASSERT_NE(key, 0U);
                ASSERT_EQ(hcamem_lkey(binding, last), key) << "a block over two slabs";
            }
            for (const auto& [block, size] : mine) {
                ASSERT_EQ(hcamem_free(pool.get(), block), 0);
            }
        }
    });
    EXPECT_EQ(hcamem_detach(binding), 0);
}

} // namespace
