// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Free blocks in a thread's cache are the pool's nevertheless.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include <pthread.h>

#include "support/blocks.hpp"
#include "support/child.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

/// A thread that does something and then lives on, doing nothing, until it is destroyed.
class idle_thread {
  public:
    explicit idle_thread(const std::function<void()>& body)
        : thread_([this, body] {
              body();
              done_ = true;
              done_.notify_one();
              end_.wait(false);
          }) {
        done_.wait(false);
    }
    idle_thread(const idle_thread&) = delete;
    idle_thread& operator=(const idle_thread&) = delete;
    ~idle_thread() {
        end_ = true;
        end_.notify_one();
        thread_.join();
    }

  private:
    std::atomic<bool> done_{false};
    std::atomic<bool> end_{false};
    std::thread thread_;
};

/// How many blocks the pool has if all are wanted.
std::size_t count_all(hcamem_pool* pool, std::size_t bytes) {
    const std::vector<void*> all = allocate_all(pool, bytes);
    free_all(pool, all);
    return all.size();
}

pool_ptr small_pool() {
    hcamem_options options = test_options();
    options.maximum = 2 * MiB;
    return make_pool(options);
}

class ThreadCache : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, ThreadCache, testing::Values(64, 1000, 4096, 65536, 300'000));

TEST_P(ThreadCache, what_others_keep_can_be_had_when_nothing_else_is_left) {
    const pool_ptr pool = small_pool();
    const std::size_t count = count_all(pool.get(), GetParam());
    const idle_thread other([&] { free_all(pool.get(), allocate_all(pool.get(), GetParam())); });
    const std::vector<void*> all = allocate_all(pool.get(), GetParam());
    EXPECT_EQ(all.size(), count);
    EXPECT_EQ(std::set<void*>(all.begin(), all.end()).size(), count);
    free_all(pool.get(), all);
}

TEST_P(ThreadCache, of_one_size_does_not_keep_another_size_from_the_memory) {
    const pool_ptr pool = small_pool();
    free_all(pool.get(), allocate_all(pool.get(), GetParam()));
    const idle_thread other([&] { free_all(pool.get(), allocate_all(pool.get(), GetParam())); });
    void* whole = hcamem_alloc(pool.get(), 2 * MiB, 0, 0);
    EXPECT_NE(whole, nullptr) << hcamem_last_message();
    EXPECT_EQ(hcamem_free(pool.get(), whole), 0);
}

TEST_P(ThreadCache, is_not_live_in_the_statistics_and_does_not_keep_the_pool_open) {
    hcamem_pool* const pool = small_pool().release();
    const idle_thread other([&] { free_all(pool, allocate_all(pool, GetParam())); });
    free_all(pool, allocate_all(pool, GetParam()));
    EXPECT_EQ(stats_of(pool).live_blocks, 0U);
    EXPECT_EQ(stats_of(pool).live_bytes, 0U);
    EXPECT_EQ(hcamem_pool_close(pool), 0) << hcamem_last_message();
}

TEST_P(ThreadCache, does_not_keep_a_slab_from_being_trimmed) {
    const pool_ptr pool = small_pool();
    const idle_thread other([&] { free_all(pool.get(), allocate_all(pool.get(), GetParam())); });
    EXPECT_EQ(hcamem_trim(pool.get(), 0), 2 * MiB);
    EXPECT_EQ(stats_of(pool.get()).slab_bytes, 0U);
}

TEST_P(ThreadCache, what_is_freed_while_somebody_waits_reaches_who_waits) {
    const pool_ptr pool = small_pool();
    std::vector<void*> all = allocate_all(pool.get(), GetParam());
    std::atomic<bool> freed{false};
    std::thread other([&] {
        void* block = hcamem_alloc(pool.get(), GetParam(), 0, -1);
        EXPECT_NE(block, nullptr);
        EXPECT_TRUE(freed);
        EXPECT_EQ(hcamem_free(pool.get(), block), 0);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    freed = true;
    EXPECT_EQ(hcamem_free(pool.get(), all.back()), 0); // which this thread's cache has room for
    all.pop_back();
    other.join();
    free_all(pool.get(), all);
}

TEST_P(ThreadCache, a_double_free_is_found_while_the_block_is_cached) {
    const pool_ptr pool = small_pool();
    const std::vector<void*> all = allocate_all(pool.get(), GetParam());
    free_all(pool.get(), all);
    for (void* block : all) {
        EXPECT_EQ(hcamem_free(pool.get(), block), -EINVAL);
        EXPECT_EQ(hcamem_free(pool.get(), static_cast<char*>(block) + 64), -EINVAL);
        EXPECT_EQ(hcamem_usable(pool.get(), block), 0U);
    }
    EXPECT_EQ(allocate_all(pool.get(), GetParam()).size(), all.size()) << "one was lost or doubled";
    free_all(pool.get(), all);
}

TEST_P(ThreadCache, of_a_thread_that_ended_is_given_back) {
    const pool_ptr pool = small_pool();
    const std::size_t count = count_all(pool.get(), GetParam());
    for (int each = 0; each < 20; ++each) {
        std::thread([&] { free_all(pool.get(), allocate_all(pool.get(), GetParam())); }).join();
    }
    const std::vector<void*> all = allocate_all(pool.get(), GetParam());
    EXPECT_EQ(all.size(), count);
    free_all(pool.get(), all);
}

TEST(ThreadCacheSizes, a_block_out_of_it_fits_as_one_out_of_the_heap_does) {
    const pool_ptr pool = make_pool(test_options());
    for (std::size_t align = 0; align <= 32 * KiB; align = align == 0 ? 32 : 2 * align) {
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{4097},
                                        64 * KiB, 64 * KiB + 1, 640 * KiB, MiB, MiB + 1}) {
            void* const first = hcamem_alloc(pool.get(), bytes, align, 0);
            ASSERT_NE(first, nullptr) << hcamem_last_message();
            const std::size_t usable = hcamem_usable(pool.get(), first);
            EXPECT_EQ(hcamem_free_sized(pool.get(), first, usable + 1, align), -EINVAL);
            EXPECT_EQ(hcamem_free_sized(pool.get(), first, bytes, align), 0);
            EXPECT_EQ(hcamem_free_sized(pool.get(), first, bytes, align), -EINVAL);
            void* const second = hcamem_alloc(pool.get(), bytes, align, 0);
            ASSERT_EQ(second, first) << "not the block that was freed last";
            EXPECT_EQ(hcamem_usable(pool.get(), second), usable);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) % std::max<std::size_t>(align, 64),
                      0U);
            EXPECT_EQ(hcamem_free(pool.get(), second), 0);
        }
    }
    for (const std::size_t align : {3U, 65U, 96U}) {
        EXPECT_EQ(hcamem_alloc(pool.get(), 100'000, align, 0), nullptr);
        EXPECT_EQ(errno, EINVAL);
    }
}

#if defined(__SANITIZE_THREAD__)
constexpr int rounds = 2; // in the third it has ended the thread itself
#else
constexpr int rounds = 3;
#endif

// Destructors of thread-specific data run in no certain order, and again while there is some.
TEST(ThreadCacheEnd, what_a_destructor_frees_after_the_cache_has_gone_is_not_lost) {
    static hcamem_pool* pool;
    static pthread_key_t key;
    static std::atomic<int> freed;
    hcamem_pool* const made = small_pool().release();
    pool = made;
    freed = 0;
    ASSERT_EQ(pthread_key_create(&key,
                                 [](void* block) {
                                     EXPECT_EQ(hcamem_free(pool, block), 0);
                                     if (++freed < rounds) { // in the next round, too
                                         pthread_setspecific(key, hcamem_alloc(pool, 4096, 0, 0));
                                     }
                                 }),
              0);
    std::thread([] { pthread_setspecific(key, hcamem_alloc(pool, 4096, 0, 0)); }).join();
    pthread_key_delete(key);
    EXPECT_EQ(freed, rounds);
    EXPECT_EQ(hcamem_pool_close(made), 0) << hcamem_last_message();
}

TEST(ThreadCacheEnd, threads_come_and_go_while_pools_do) {
    std::atomic<bool> done{false};
    std::vector<std::thread> makers;
    for (int each = 0; each < 2; ++each) {
        makers.emplace_back([&] {
            while (!done) {
                hcamem_pool* const pool = small_pool().release();
                std::array<std::thread, 2> users;
                for (std::thread& user : users) {
                    user = std::thread([&] {
                        for (int count = 0; count < 50; ++count) {
                            void* block = hcamem_alloc(pool, 5000, 0, 0);
                            ASSERT_NE(block, nullptr);
                            ASSERT_EQ(hcamem_free(pool, block), 0);
                        }
                    });
                }
                users[0].join();
                EXPECT_EQ(hcamem_trim(pool, 0) % (2 * MiB), 0U);
                users[1].join();
                EXPECT_EQ(hcamem_pool_close(pool), 0);
            }
        });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    done = true;
    for (std::thread& maker : makers) {
        maker.join();
    }
}

TEST(ThreadCacheFork, of_the_parent_is_not_the_childs) {
    const pool_ptr pool = small_pool();
    free_all(pool.get(), allocate_all(pool.get(), 4096));
    EXPECT_EQ(run_in_child(birth::clone,
                           [&] { return hcamem_alloc(pool.get(), 4096, 0, 0) == nullptr ? 0 : 1; }),
              0);
    EXPECT_EQ(run_in_child(birth::fork,
                           [&] {
                               const pool_ptr own = small_pool();
                               const std::vector<void*> all = allocate_all(own.get(), 4096);
                               free_all(own.get(), all);
                               return all.size() == 512 ? 0 : 1;
                           }),
              0);
}

} // namespace
