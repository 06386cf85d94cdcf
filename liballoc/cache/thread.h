// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the library keeps for a thread: its caches, in memory that a child of fork()
// finds zeroed, so that there every operation takes the way that asks whose the heap is.
//
//   hcamem_thread_2 -> thread_state.caches.of[heap id] -> cache_set.caches[class]
//
// The lock of the links, process_page::caches, comes before a cache_set's lock.
#ifndef HCAMEM_CACHE_THREAD_H
#define HCAMEM_CACHE_THREAD_H

#include <cstddef>
#include <cstdint>
#include <mutex>

#include <hcamem/detail/block_cache.hpp>

namespace hcamem::core {

using detail::block_cache;
using detail::cached_block;

class cached_heap;
struct thread_state;

/// The caches of one thread for one heap, and behind them their blocks. Mapped, since a
/// child must find it zeroed.
struct cache_set {
    // Held by the owner when it does more than take or put one, and by who takes away.
    std::mutex lock;
    cached_heap* heap;
    thread_state* owner;
    cache_set* next_of_heap;
    cache_set* next_of_thread;
    std::size_t bytes; // of the mapping
    // By kind:
    cached_block** taken_from; // the bottom before another thread raised it
    cached_block** noted_end;  // the owner's: the noted blocks lie below it
    std::uint32_t count;
    std::uint32_t arena;   // of the heap behind, where the owner's blocks come from
    block_cache caches[1]; // in truth `count`
};

/// Where hcamem_thread_2 points to.
struct thread_state {
    detail::thread_caches caches;
    cache_set* sets;
    bool entered; // false in a child
};

/// The calling thread's state, made if there is none; nullptr: no memory.
thread_state* enter_thread() noexcept;

} // namespace hcamem::core

#endif
