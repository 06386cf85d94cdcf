// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Which process is this? A child made by fork() or by a raw clone() runs with a
// copy of the parent's memory, in which locks may be held by threads that the
// child does not have, and with the parent's uverbs descriptor. What belongs to
// the process alone therefore lies in one page that the kernel zeroes in a child
// (MADV_WIPEONFORK). Every entry of the library compares the pool's generation
// with the page's before it takes a lock or calls a verb.
#ifndef HCAMEM_OS_PROCESS_H
#define HCAMEM_OS_PROCESS_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace hcamem::core {

/// Handles that ended, oldest first, all of one type. Zero is the empty state, as
/// the state of a child is. Guarded by `lock`; zero is an unlocked std::mutex in
/// the C libraries that have MADV_WIPEONFORK (PTHREAD_MUTEX_INITIALIZER).
struct idle_handles {
    std::mutex lock;
    void* oldest;
    void* newest;
    std::size_t count;
};

struct process_page {
    std::atomic<std::uint64_t> generation; // 0: a fresh child
    std::mutex caches;                     // which threads have caches for which heaps
    idle_handles pools;
    idle_handles bindings;
    idle_handles buffer_pools;
    idle_handles shared_heaps;
};

/// The page, or nullptr before enter_process() was called.
extern std::atomic<process_page*> the_process_page;

/// This process's generation, which is unique among it and its ancestors; 0 in a
/// child that has not made a pool. A load, so cheap enough for every call.
inline std::uint64_t process_generation() noexcept {
    const process_page* page = the_process_page.load(std::memory_order_acquire);
    return page == nullptr ? 0 : page->generation.load(std::memory_order_relaxed);
}

/// Gives the process its page and generation if it has none. nullptr: no memory.
process_page* enter_process() noexcept;

} // namespace hcamem::core

#endif
