// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Processes that are killed while they use a shared heap: with the lock nobody may hang or
// go on, without it nobody may notice.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/container/vector.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include "support/heaps.hpp"

namespace {

using namespace unit;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using hcamem::shared_allocator;
using hcamem::shared_heap;

constexpr int killed = 128 + SIGKILL;

/// Kills its process in the middle of the heap's own work, under its lock.
struct deadly {
    deadly() { raise(SIGKILL); }
};

int die_with_the_lock(const shared_heap& heap) {
    const auto guard = heap.lock();
    raise(SIGKILL);
    return 0;
}

/// Everything that takes the lock.
void expect_poisoned(shared_heap heap) {
    EXPECT_TRUE(heap.poisoned());
    EXPECT_EQ(error_of([&] { static_cast<void>(heap.lock()); }), ENOTRECOVERABLE);
    EXPECT_EQ(error_of([&] { static_cast<void>(heap.lock_for(1s)); }), ENOTRECOVERABLE);
    EXPECT_EQ(error_of([&] { static_cast<void>(heap.allocate(1)); }), ENOTRECOVERABLE);
    EXPECT_EQ(error_of([&] { heap.deallocate(hcamem_shared_address(heap.c_handle())); }),
              ENOTRECOVERABLE);
    EXPECT_EQ(error_of([&] { heap.construct<int>("x", 1); }), ENOTRECOVERABLE);
    EXPECT_EQ(error_of([&] { static_cast<void>(heap.find<int>("x")); }), ENOTRECOVERABLE);
    EXPECT_EQ(error_of([&] { heap.destroy<int>("x"); }), ENOTRECOVERABLE);
    EXPECT_EQ(error_of([&] { static_cast<void>(heap.free_memory()); }), ENOTRECOVERABLE);
    EXPECT_EQ(error_of([&] { static_cast<void>(heap.get_allocator<int>().allocate(1)); }),
              ENOTRECOVERABLE);
}

TEST(SharedHeapDeath, with_the_lock_poisons_the_heap_for_all_and_for_good) {
    shared_heap heap = make_heap();
    beside victim([&] { return die_with_the_lock(heap); });
    const std::string pid = std::to_string(victim.pid());
    ASSERT_EQ(victim.wait(), killed);
    try {
        static_cast<void>(heap.lock());
        FAIL();
    } catch (const hcamem::error& caught) {
        EXPECT_EQ(caught.code().value(), ENOTRECOVERABLE);
        EXPECT_NE(std::strstr(caught.what(), pid.c_str()), nullptr) << caught.what();
        EXPECT_NE(std::strstr(caught.what(), "make a new one"), nullptr) << caught.what();
    }
    expect_poisoned(heap);
    EXPECT_EQ(beside([&] {
                  expect_poisoned(heap);
                  return testing::Test::HasFailure() ? 1 : 0;
              }).wait(),
              0);
    EXPECT_EQ(beside([&] {
                  const auto [control, memory] = heap.descriptors();
                  const int again[2] = {dup(control), dup(memory)};
                  hcamem_shared_close(heap.c_handle());
                  expect_poisoned(shared_heap::join(again[0], again[1]));
                  return testing::Test::HasFailure() ? 1 : 0;
              }).wait(),
              0)
        << "who joins later";
}

TEST(SharedHeapDeath, inside_an_operation_of_the_heap_counts) {
    shared_heap heap = make_heap();
    EXPECT_EQ(beside([&] {
                  heap.construct<deadly>("deadly");
                  return 0;
              }).wait(),
              killed);
    expect_poisoned(heap);
}

TEST(SharedHeapDeath, after_locking_twice_and_unlocking_once_counts) {
    shared_heap heap = make_heap();
    EXPECT_EQ(beside([&] {
                  const auto outer = heap.lock();
                  heap.lock().unlock();
                  raise(SIGKILL);
                  return 0;
              }).wait(),
              killed);
    EXPECT_TRUE(heap.poisoned());
}

/// How long after the death of who had the lock five waiters knew of it.
clock::duration time_to_be_told() {
    shared_heap heap = make_heap();
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    beside holder([&] {
        const auto guard = heap.lock();
        EXPECT_EQ(write(ends[1], "x", 1), 1);
        pause();
        return 0;
    });
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    const auto wait_for_it = [&] {
        const int error = error_of([&] { static_cast<void>(heap.lock()); });
        return error == ENOTRECOVERABLE ? 0 : 1;
    };
    std::vector<beside> waiters;
    for (int index = 0; index < 4; ++index) {
        waiters.emplace_back(wait_for_it);
    }
    int here = -1;
    std::thread thread([&] { here = wait_for_it(); });
    std::this_thread::sleep_for(300ms);
    const auto death = clock::now();
    holder.kill();
    for (beside& waiter : waiters) {
        EXPECT_EQ(waiter.wait(), 0);
    }
    thread.join();
    const auto took = clock::now() - death;
    EXPECT_EQ(here, 0);
    close(ends[0]);
    close(ends[1]);
    return took;
}

TEST(SharedHeapDeath, whoever_waits_is_told_within_a_second) {
    // Again if others had the processors meanwhile.
    auto fastest = time_to_be_told();
    for (int tries = 1; tries < 10 && fastest >= 1s; ++tries) {
        fastest = std::min(fastest, time_to_be_told());
    }
    EXPECT_LT(fastest, 1s);
}

TEST(SharedHeapDeath, of_waiters_harms_nobody) {
    shared_heap heap = make_heap();
    {
        const auto guard = heap.lock();
        std::vector<beside> waiters;
        for (int index = 0; index < 4; ++index) {
            waiters.emplace_back([&] {
                static_cast<void>(heap.lock());
                return 0;
            });
        }
        std::this_thread::sleep_for(200ms);
        waiters[0].kill();
        waiters[2].kill();
        EXPECT_EQ(waiters[0].wait(), killed);
    }
    EXPECT_FALSE(heap.poisoned());
    heap.deallocate(heap.allocate(100));
}

TEST(SharedHeapDeath, without_the_lock_harms_nobody) {
    shared_heap heap = make_heap();
    for (int round = 0; round < 10; ++round) {
        EXPECT_EQ(beside([&] {
                      static_cast<void>(heap.allocate(1000));
                      heap.lock().unlock();
                      raise(SIGKILL);
                      return 0;
                  }).wait(),
                  killed);
        EXPECT_FALSE(heap.poisoned());
    }
    heap.deallocate(heap.allocate(100));
    EXPECT_TRUE(heap.segment()->check_sanity());
}

TEST(SharedHeapDeath, of_a_thread_with_the_lock_counts) {
    shared_heap heap = make_heap();
    std::optional<shared_heap::guard> left;
    std::thread([&] { left = heap.lock(); }).join();
    // May be at the same address as the one that died.
    std::thread([&] {
        EXPECT_EQ(error_of([&] { static_cast<void>(heap.lock()); }), ENOTRECOVERABLE);
    }).join();
    expect_poisoned(heap);
}

TEST(SharedHeapDeath, containers_of_a_poisoned_heap_may_be_destroyed) {
    shared_heap heap = make_heap();
    {
        boost::container::vector<int, shared_allocator<int>> numbers(1000, 1,
                                                                     heap.get_allocator<int>());
        EXPECT_EQ(beside([&] { return die_with_the_lock(heap); }).wait(), killed);
        EXPECT_EQ(error_of([&] { numbers.resize(100000); }), ENOTRECOVERABLE);
    }
    EXPECT_TRUE(heap.poisoned());
}

TEST(SharedHeapDeath, at_any_moment_leaves_a_heap_that_is_sound_or_poisoned) {
    constexpr int rounds = 60;
    constexpr int most_rounds = 2000; // until one was killed inside
    int poisoned = 0;
    int slow = 0;
    for (int round = 0; round < rounds || (poisoned == 0 && round < most_rounds); ++round) {
        shared_heap heap = make_heap();
        auto* const turns = heap.construct<std::atomic<int>>("turns", 0);
        std::vector<beside> workers;
        for (unsigned index = 0; index < 2; ++index) {
            workers.emplace_back([&heap, turns, index] {
                return error_of([&] {
                    for (std::size_t count = index;; ++count) {
                        ++*turns;
                        void* block = heap.allocate(1 + count * 37 % 5000, 64);
                        std::memset(block, 1, 1);
                        heap.deallocate(block);
                    }
                });
            });
        }
        const auto birth = clock::now();
        while (*turns < 10) { // until they are at it
            ASSERT_LT(clock::now() - birth, 180s);
            std::this_thread::yield();
        }
        std::this_thread::sleep_for(std::chrono::microseconds(97 * (round % rounds)));
        workers[0].kill();
        ASSERT_EQ(workers[0].wait(), killed);
        const auto begin = clock::now();
        const int error = error_of([&] {
            const auto guard = heap.lock();
            EXPECT_TRUE(heap.segment()->check_sanity());
            heap.deallocate(heap.allocate(1000));
        });
        slow += clock::now() - begin > 1s ? 1 : 0;
        EXPECT_TRUE(error == 0 || error == ENOTRECOVERABLE) << error;
        poisoned += error != 0;
        if (error != 0) {
            EXPECT_EQ(workers[1].wait(), ENOTRECOVERABLE) << "the other one got the error too";
        }
    }
    EXPECT_GT(poisoned, 0) << "no worker was killed inside";
    EXPECT_LT(slow, rounds / 2) << "it takes more than a second to be told";
}

} // namespace
