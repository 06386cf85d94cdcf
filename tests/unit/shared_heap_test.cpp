// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A shared heap within one process: objects, containers, blocks, lock, registration.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/heaps.hpp"
#include "support/mapped.hpp"

namespace {

using namespace unit;
using namespace std::chrono_literals;
using hcamem::shared_allocator;
using hcamem::shared_heap;

struct throws_when_made {
    throws_when_made() { throw std::runtime_error("no"); }
};

struct alignas(4096) page {
    char bytes[4096];
};

TEST(SharedHeap, objects_have_names) {
    shared_heap heap = make_heap();
    EXPECT_EQ(heap.find<int>("counter"), nullptr);
    int* const counter = heap.construct<int>("counter", 5);
    EXPECT_TRUE(heap.owns(counter));
    EXPECT_EQ(heap.find<int>("counter"), counter);
    EXPECT_EQ(heap.find_or_construct<int>("counter", 9), counter);
    EXPECT_EQ(*counter, 5);
    EXPECT_EQ(*heap.find_or_construct<long>("other", 7L), 7);
    EXPECT_TRUE(heap.destroy<int>("counter"));
    EXPECT_FALSE(heap.destroy<int>("counter"));
    EXPECT_EQ(heap.find<int>("counter"), nullptr);
    EXPECT_EQ(heap.construct<page>("page")->bytes[4095], 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(heap.find<page>("page")) % 4096, 0U);
}

TEST(SharedHeap, names_that_make_no_sense_are_refused) {
    shared_heap heap = make_heap();
    heap.construct<int>("taken", 1);
    EXPECT_EQ(error_of([&] { heap.construct<int>("taken", 2); }), EEXIST);
    EXPECT_EQ(error_of([&] { static_cast<void>(heap.find<double>("taken")); }), EINVAL);
    EXPECT_EQ(error_of([&] { heap.destroy<double>("taken"); }), EINVAL);
    EXPECT_EQ(error_of([&] { heap.construct<int>("", 2); }), EINVAL);
    EXPECT_EQ(error_of([&] { static_cast<void>(heap.find<int>(nullptr)); }), EINVAL);
    EXPECT_EQ(*heap.find<int>("taken"), 1);
}

TEST(SharedHeap, an_object_that_cannot_be_made_leaves_nothing) {
    shared_heap heap = make_heap();
    const std::size_t before = heap.free_memory();
    EXPECT_THROW(heap.construct<throws_when_made>("bad"), std::runtime_error);
    EXPECT_EQ(heap.find<throws_when_made>("bad"), nullptr);
    EXPECT_EQ(heap.free_memory(), before);
    using large = std::array<char, 5 * MiB>;
    EXPECT_THROW(heap.construct<large>("large"), hcamem::exhausted);
    EXPECT_EQ(heap.free_memory(), before);
}

TEST(SharedHeap, blocks_are_aligned_and_come_back) {
    shared_heap heap = make_heap();
    EXPECT_EQ(heap.size(), 4 * MiB);
    const std::size_t before = heap.free_memory();
    EXPECT_GT(before, 4 * MiB - 64 * KiB) << "little is taken by bookkeeping";
    std::vector<void*> blocks;
    for (const std::size_t align : {0, 1, 8, 64, 128, 4096, 65536}) {
        for (const std::size_t bytes : {1, 63, 64, 100, 5000}) {
            void* block = heap.allocate(bytes, align);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % (align == 0 ? 64 : align), 0U);
            EXPECT_TRUE(heap.owns(block));
            std::memset(block, 0xff, bytes);
            blocks.push_back(block);
        }
    }
    for (void* block : blocks) {
        heap.deallocate(block);
    }
    heap.deallocate(nullptr);
    EXPECT_EQ(heap.free_memory(), before);
    EXPECT_TRUE(heap.segment()->check_sanity());
}

TEST(SharedHeap, what_cannot_be_had_is_said_with_its_numbers) {
    shared_heap heap = make_heap();
    try {
        static_cast<void>(heap.allocate(4 * MiB));
        FAIL();
    } catch (const hcamem::exhausted& caught) {
        EXPECT_EQ(caught.code(), std::errc::not_enough_memory);
        EXPECT_NE(std::strstr(caught.what(), "4194304"), nullptr) << caught.what();
        EXPECT_NE(std::strstr(caught.what(), "larger"), nullptr) << caught.what();
    }
    EXPECT_THROW(static_cast<void>(heap.allocate(SIZE_MAX)), hcamem::exhausted);
    EXPECT_THROW(static_cast<void>(heap.allocate(SIZE_MAX - 100, 4096)), hcamem::exhausted);
    EXPECT_EQ(error_of([&] { static_cast<void>(heap.allocate(1, 3)); }), EINVAL);
    EXPECT_EQ(error_of([&] { static_cast<void>(heap.allocate(1, 4 * MiB)); }), EINVAL);
    int on_stack = 0;
    EXPECT_EQ(error_of([&] { heap.deallocate(&on_stack); }), EINVAL);
    auto longs = heap.get_allocator<long>();
    EXPECT_THROW(static_cast<void>(longs.allocate(SIZE_MAX / 2)), std::bad_array_new_length);
    EXPECT_THROW(static_cast<void>(longs.allocate(SIZE_MAX / 32)), hcamem::exhausted);
    std::size_t count = 0;
    try {
        for (;; ++count) {
            static_cast<void>(heap.allocate(64 * KiB));
        }
    } catch (const hcamem::exhausted&) {
    }
    EXPECT_GE(count, 60U);
}

TEST(SharedHeap, containers_lie_in_it) {
    shared_heap heap = make_heap();
    const std::size_t before = heap.free_memory();
    {
        auto* const numbers = heap.construct<shared_vector>("numbers", heap.get_allocator<int>());
        auto* const texts =
            heap.construct<shared_map>("texts", heap.get_allocator<shared_map::value_type>());
        for (int index = 0; index < 1000; ++index) {
            numbers->push_back(index);
            texts->emplace(index, shared_string(static_cast<std::size_t>(index), 'x',
                                                heap.get_allocator<char>()));
        }
        EXPECT_TRUE(heap.owns(numbers->data()));
        EXPECT_TRUE(heap.owns(texts->at(500).data()));
        EXPECT_EQ(texts->at(999).size(), 999U);
        const std::vector<int, shared_allocator<int>> local(100, 7, heap.get_allocator<int>());
        EXPECT_TRUE(heap.owns(local.data())) << "the container on the stack, its elements not";
        EXPECT_TRUE(heap.segment()->check_sanity());
    }
    EXPECT_TRUE(heap.destroy<shared_vector>("numbers"));
    EXPECT_TRUE(heap.destroy<shared_map>("texts"));
    EXPECT_EQ(heap.free_memory(), before);
}

TEST(SharedHeap, copies_are_the_same_heap_and_the_last_one_closes_it) {
    const std::size_t descriptors = open_descriptors();
    for (int round = 0; round < 100; ++round) { // more than there are idle handles
        void* block = nullptr;
        {
            auto first = std::make_unique<shared_heap>(make_heap());
            shared_heap second = *first;
            EXPECT_TRUE(second == *first);
            block = second.allocate(10);
            first.reset();
            EXPECT_TRUE(is_accessible(block));
            second.construct<int>("x", 1);
        }
        EXPECT_FALSE(is_accessible(block));
        EXPECT_EQ(hcamem_shared_find(block), nullptr);
    }
    EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(SharedHeap, an_allocator_knows_when_its_heap_was_closed) {
    auto heap = std::make_unique<shared_heap>(make_heap());
    auto ints = heap->get_allocator<int>();
    const auto block = ints.allocate(10);
    heap.reset();
    EXPECT_EQ(error_of([&] { static_cast<void>(ints.allocate(1)); }), EBADF);
    ints.deallocate(block, 10);
}

TEST(SharedHeap, there_may_be_many) {
    std::vector<shared_heap> heaps;
    for (int index = 0; index < 20; ++index) {
        heaps.push_back(make_heap(2 * MiB));
        *heaps.back().construct<int>("number") = index;
    }
    for (int index = 0; index < 20; ++index) {
        int* const number = heaps[static_cast<std::size_t>(index)].find<int>("number");
        EXPECT_EQ(*number, index);
        EXPECT_EQ(hcamem_shared_find(number), heaps[static_cast<std::size_t>(index)].c_handle());
    }
}

TEST(SharedHeapLock, a_thread_may_take_it_again) {
    shared_heap heap = make_heap();
    const auto outer = heap.lock();
    {
        auto inner = heap.lock();
        heap.construct<int>("x", 1);
        inner.unlock();
        inner.unlock();
    }
    std::thread other([&] {
        EXPECT_EQ(error_of([&] { static_cast<void>(heap.lock_for(0ms)); }), ETIMEDOUT)
            << "the inner one was not the last";
    });
    other.join();
    EXPECT_EQ(hcamem_shared_close(heap.c_handle()), -EBUSY);
    EXPECT_FALSE(heap.poisoned());
}

TEST(SharedHeapLock, excludes_threads) {
    shared_heap heap = make_heap();
    auto* const numbers = heap.construct<shared_vector>("numbers", heap.get_allocator<int>());
    std::vector<std::thread> threads;
    for (int index = 0; index < 4; ++index) {
        threads.emplace_back([&] {
            for (int count = 0; count < 500; ++count) {
                const auto guard = heap.lock();
                numbers->push_back(count);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(numbers->size(), 2000U);
}

TEST(SharedHeapLock, waiting_ends_when_the_time_is_over) {
    shared_heap heap = make_heap();
    const auto guard = heap.lock();
    std::thread other([&] {
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(error_of([&] { static_cast<void>(heap.lock_for(300ms)); }), ETIMEDOUT);
        EXPECT_GE(std::chrono::steady_clock::now() - begin, 300ms);
        EXPECT_NE(std::strstr(hcamem_last_message(), "process"), nullptr) << hcamem_last_message();
    });
    other.join();
    EXPECT_EQ(hcamem_shared_lock(heap.c_handle(), -2), -EINVAL);
}

TEST(SharedHeapLock, unlocking_what_one_has_not_is_misuse) {
    shared_heap heap = make_heap();
    EXPECT_EQ(hcamem_shared_unlock(heap.c_handle()), -EINVAL);
    const auto guard = heap.lock();
    std::thread other([&] { EXPECT_EQ(hcamem_shared_unlock(heap.c_handle()), -EINVAL); });
    other.join();
}

TEST(SharedHeapBinding, covers_the_whole_heap) {
    shared_heap heap = make_heap(6 * MiB);
    fake_domain domain;
    hcamem_binding* made = nullptr;
    ASSERT_EQ(attach(heap, domain, &made), 0);
    {
        const hcamem::binding binding(made);
        EXPECT_EQ(domain.registered_bytes(), 6 * MiB);
        auto* const first = static_cast<std::byte*>(heap.allocate(MiB));
        const ibv_sge entry = binding.sge(first, MiB);
        EXPECT_TRUE(domain.covers(first, entry.lkey));
        const auto* const begin = static_cast<std::byte*>(hcamem_shared_address(heap.c_handle()));
        EXPECT_EQ(binding.lkey(begin + 6 * MiB - 1), entry.lkey);
        EXPECT_EQ(binding.lkey(begin + 6 * MiB), 0U);
        int on_stack = 0;
        EXPECT_EQ(binding.lkey(&on_stack), 0U);
    }
    EXPECT_EQ(domain.registered(), 0U);
}

TEST(SharedHeapBinding, may_outlive_the_heap) {
    fake_domain domain;
    hcamem::binding binding;
    void* block = nullptr;
    {
        shared_heap heap = make_heap();
        hcamem_binding* made = nullptr;
        ASSERT_EQ(attach(heap, domain, &made), 0);
        binding = hcamem::binding(made);
        block = heap.allocate(10);
        EXPECT_NE(binding.lkey(block), 0U);
    }
    EXPECT_EQ(domain.registered(), 0U);
    EXPECT_EQ(binding.lkey(block), 0U);
    EXPECT_FALSE(is_accessible(block));
}

TEST(SharedHeapBinding, the_heap_stays_while_the_HCA_keeps_a_registration) {
    shared_heap heap = make_heap();
    fake_domain domain;
    hcamem_binding* made = nullptr;
    ASSERT_EQ(attach(heap, domain, &made), 0);
    const hcamem::binding binding(made);
    void* block = heap.allocate(10);
    domain.fail_deregistration(EBUSY);
    EXPECT_EQ(hcamem_shared_close(heap.c_handle()), -EBUSY);
    EXPECT_NE(binding.lkey(block), 0U);
    domain.fail_deregistration(0);
    heap.deallocate(block);
}

TEST(SharedHeapBinding, a_registration_that_fails_leaves_nothing) {
    shared_heap heap = make_heap();
    fake_domain domain;
    domain.fail_registration(1, ENOMEM);
    hcamem_binding* made = nullptr;
    EXPECT_EQ(attach(heap, domain, &made), -ENOMEM);
    EXPECT_EQ(attach(heap, domain, &made), 0);
    EXPECT_EQ(hcamem_detach(made), 0);
}

TEST(SharedHeapBinding, remote_access_must_be_allowed_when_the_heap_is_made) {
    const shared_heap heap = make_heap();
    alignas(ibv_pd) unsigned char nothing[sizeof(ibv_pd)] = {}; // not looked into before
    auto* const pd = reinterpret_cast<ibv_pd*>(nothing);
    for (const int access : {IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
                             IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_MW_BIND}) {
        EXPECT_EQ(
            error_of([&] { static_cast<void>(heap.attach(pd, access | IBV_ACCESS_LOCAL_WRITE)); }),
            EPERM);
    }
    EXPECT_EQ(error_of([&] { static_cast<void>(heap.attach(nullptr)); }), EINVAL);
}

} // namespace
