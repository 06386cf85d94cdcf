// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Several processes have one shared heap: by fork, and by descriptors after exec.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/child.hpp"
#include "support/heaps.hpp"
#include "support/mapped.hpp"

namespace {

using namespace unit;
using namespace std::chrono_literals;
using hcamem::shared_heap;

int in_child(const std::function<int()>& body) {
    return beside(body).wait();
}

TEST(SharedHeapJoin, a_forked_child_has_it) {
    shared_heap heap = make_heap();
    auto* const numbers = heap.construct<shared_vector>("numbers", heap.get_allocator<int>());
    EXPECT_EQ(in_child([&] {
                  const auto guard = heap.lock();
                  numbers->assign(10000, 7);
                  heap.construct<int>("from the child", 42);
                  return heap.find<shared_vector>("numbers") == numbers ? 0 : 1;
              }),
              0);
    EXPECT_EQ(std::accumulate(numbers->begin(), numbers->end(), 0), 70000);
    EXPECT_EQ(*heap.find<int>("from the child"), 42);
    EXPECT_TRUE(heap.destroy<shared_vector>("numbers"));
}

TEST(SharedHeapJoin, a_grandchild_has_it_after_the_others_ended) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    void* block = nullptr;
    {
        shared_heap heap = make_heap();
        block = heap.allocate(10);
        heap.construct<int>("x", 5);
        EXPECT_EQ(in_child([&] {
                      if (fork() == 0) {
                          std::this_thread::sleep_for(200ms);
                          const char x = static_cast<char>(*heap.find<int>("x"));
                          heap.deallocate(heap.allocate(1000));
                          _exit(write(ends[1], &x, 1) == 1 ? 0 : 1);
                      }
                      return 0;
                  }),
                  0);
    }
    EXPECT_FALSE(is_accessible(block));
    close(ends[1]);
    char x = 0;
    EXPECT_EQ(read(ends[0], &x, 1), 1);
    EXPECT_EQ(x, 5);
    close(ends[0]);
}

// The C library's locks hold thread numbers that such a child has wrong.
TEST(SharedHeapJoin, a_child_of_a_raw_clone_is_told_that_it_cannot) {
    shared_heap heap = make_heap();
    EXPECT_EQ(run_in_child(birth::clone,
                           [&] {
                               if (hcamem_shared_lock(heap.c_handle(), -1) != -ESTALE) {
                                   return 1;
                               }
                               hcamem_shared* made = nullptr;
                               if (hcamem_shared_create(nullptr, 1, 0, 0, &made) != -ESTALE) {
                                   return 2;
                               }
                               return hcamem_shared_unlock(heap.c_handle()) == 0 &&
                                              hcamem_shared_close(heap.c_handle()) == 0
                                          ? 0
                                          : 3;
                           }),
              0);
    heap.deallocate(heap.allocate(1));
}

TEST(SharedHeapJoin, a_child_forked_under_the_lock_does_not_have_it) {
    shared_heap heap = make_heap();
    {
        const auto guard = heap.lock();
        EXPECT_EQ(in_child([&] {
                      if (error_of([&] { static_cast<void>(heap.lock_for(100ms)); }) != ETIMEDOUT) {
                          return 1;
                      }
                      // As the copy of the guard does, but once only.
                      return hcamem_shared_unlock(heap.c_handle()) == 0 &&
                                     hcamem_shared_unlock(heap.c_handle()) == -EINVAL
                                 ? 0
                                 : 2;
                  }),
                  0);
        EXPECT_EQ(in_child([&] { return 0; }), 0) << "nor does its end free it";
        EXPECT_EQ(error_of([&] { heap.deallocate(heap.allocate(1)); }), 0);
    }
    EXPECT_EQ(in_child([&] {
                  heap.construct<int>("x", 1);
                  return 0;
              }),
              0);
    EXPECT_NE(heap.find<int>("x"), nullptr);
}

TEST(SharedHeapJoin, a_child_forked_while_another_thread_has_the_lock_waits_for_it) {
    shared_heap heap = make_heap();
    std::atomic<bool> stop{false};
    std::thread other([&] {
        while (!stop) {
            const auto guard = heap.lock();
            heap.deallocate(heap.allocate(1000));
        }
    });
    for (int round = 0; round < 20; ++round) {
        ASSERT_EQ(in_child([&] {
                      for (int count = 0; count < 10; ++count) {
                          heap.deallocate(heap.allocate(100));
                      }
                      return 0;
                  }),
                  0);
    }
    stop = true;
    other.join();
    EXPECT_TRUE(heap.segment()->check_sanity());
}

TEST(SharedHeapJoin, bindings_are_of_one_process) {
    shared_heap heap = make_heap();
    fake_domain domain;
    hcamem_binding* made = nullptr;
    ASSERT_EQ(attach(heap, domain, &made), 0);
    const hcamem::binding binding(made);
    void* block = heap.allocate(100);
    EXPECT_EQ(in_child([&] {
                  if (binding.lkey(block) != 0 || hcamem_detach(made) != 0) {
                      return 1;
                  }
                  fake_domain own;
                  hcamem_binding* mine = nullptr;
                  if (attach(heap, own, &mine) != 0 ||
                      !own.covers(block, hcamem_lkey(mine, block)) || hcamem_detach(mine) != 0) {
                      return 2;
                  }
                  // The parent's registration saw nothing of that.
                  return hcamem_shared_close(heap.c_handle()) == 0 && domain.registered() == 1 ? 0
                                                                                               : 3;
              }),
              0);
    EXPECT_TRUE(domain.covers(block, binding.lkey(block)));
    heap.deallocate(block);
}

TEST(SharedHeapJoin, another_program_works_with_it_at_another_address) {
    helper other;
    {
        shared_heap heap = make_heap();
        auto* const numbers = heap.construct<shared_vector>("numbers", heap.get_allocator<int>());
        for (int index = 0; index < 1000; ++index) {
            numbers->push_back(index);
        }
        auto* const texts =
            heap.construct<shared_map>("texts", heap.get_allocator<shared_map::value_type>());
        texts->emplace(7, shared_string("seven", heap.get_allocator<char>()));
        int* const counter = heap.construct<int>("counter", 0);
        tell(other.socket(),
             reinterpret_cast<std::uintptr_t>(hcamem_shared_address(heap.c_handle())));
        heap.send(other.socket());
        for (int count = 0; count < 2000; ++count) {
            const auto guard = heap.lock();
            ++*counter;
        }
        ASSERT_EQ(hear(other.socket()), 1U);
        EXPECT_EQ(*counter, 4000);
        EXPECT_EQ(numbers->size(), 5000U);
        EXPECT_EQ(texts->at(8).size(), 500U);
        EXPECT_EQ(texts->at(7).substr(0, 13), "another seven");
        EXPECT_EQ(*heap.find<int>("from the helper"), 42);
        EXPECT_TRUE(heap.segment()->check_sanity());
        heap.construct<int>("after", 6);
    }
    tell(other.socket(), 2);
    EXPECT_EQ(other.wait(), 0);
}

TEST(SharedHeapJoin, by_descriptors_that_may_be_closed_at_once) {
    const auto heap = std::make_unique<shared_heap>(make_heap());
    heap->construct<int>("x", 3);
    EXPECT_EQ(in_child([&] {
                  const auto [control, memory] = heap->descriptors();
                  const int again[2] = {dup(control), dup(memory)};
                  void* const before = hcamem_shared_address(heap->c_handle());
                  if (hcamem_shared_close(heap->c_handle()) != 0) {
                      return 1;
                  }
                  mmap(before, 4 * MiB, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
                  shared_heap joined = shared_heap::join(again[0], again[1]);
                  close(again[0]);
                  close(again[1]);
                  if (hcamem_shared_address(joined.c_handle()) == before) {
                      return 2;
                  }
                  joined.construct<int>("y", 4);
                  return *joined.find<int>("x") == 3 ? 0 : 3;
              }),
              0);
    EXPECT_EQ(*heap->find<int>("y"), 4);
}

TEST(SharedHeapJoin, twice_in_one_process_is_refused) {
    shared_heap heap = make_heap();
    const auto [control, memory] = heap.descriptors();
    const std::size_t descriptors = open_descriptors();
    EXPECT_EQ(error_of([&] { static_cast<void>(shared_heap::join(control, memory)); }), EEXIST);
    EXPECT_NE(std::strstr(hcamem_last_message(), "before"), nullptr) << hcamem_last_message();
    EXPECT_EQ(in_child([&] {
                  return error_of([&] { static_cast<void>(shared_heap::join(control, memory)); }) ==
                                 EEXIST
                             ? 0
                             : 1;
              }),
              0)
        << "inherited";
    EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(SharedHeapJoin, every_type_of_UNIX_socket_carries_it) {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
        int ends[2];
        ASSERT_EQ(socketpair(AF_UNIX, type, 0, ends), 0);
        const std::size_t descriptors = open_descriptors();
        {
            const auto heap = std::make_unique<shared_heap>(make_heap());
            heap->send(ends[0]);
            EXPECT_EQ(in_child([&] {
                          hcamem_shared_close(heap->c_handle());
                          shared_heap joined = shared_heap::receive(ends[1]);
                          joined.deallocate(joined.allocate(10));
                          return 0;
                      }),
                      0);
        }
        EXPECT_EQ(open_descriptors(), descriptors);
        close(ends[0]);
        close(ends[1]);
    }
}

} // namespace
