// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A heap with a cache of free blocks in each thread that uses it. A block in a cache
// counts as handed out for the heap behind; it can be had by every thread nevertheless:
// reclaim() takes the blocks out of all caches.
//
// Locks: process_page::caches, then a cache_set's, then those of the heap behind.
#ifndef HCAMEM_CACHE_CACHED_HEAP_H
#define HCAMEM_CACHE_CACHED_HEAP_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cache/thread.h"

namespace hcamem::core {

class cached_heap {
  public:
    cached_heap() noexcept;
    cached_heap(const cached_heap&) = delete;
    cached_heap& operator=(const cached_heap&) = delete;

    /// In thread_caches::of. 0 is no heap's: such a heap has no caches.
    [[nodiscard]] std::uint32_t heap_id() const noexcept { return id_; }

    /// Gives a set's blocks to its heap and unmaps it. process_page::caches is held.
    static void end_set(cache_set& ended) noexcept;

  protected:
    ~cached_heap() = default;

    /// From now on threads get caches: capacities[i] blocks each for blocks of kind i.
    void open_caches(std::span<const std::uint16_t> capacities) noexcept;
    /// Unmaps all caches, which are empty. No thread may use the heap meanwhile.
    void end_caches() noexcept;

    /// A block that the calling thread's cache did not have. False: the heap behind has none
    /// either, or is closed.
    [[nodiscard]] bool refill(std::size_t kind, cached_block& taken) noexcept;

    /// Puts a block into the calling thread's cache, or into the heap behind; after a
    /// block_cache::put() that failed, spill() instead. True: the heap has drained.
    [[nodiscard]] bool put_slowly(std::size_t kind, const cached_block& block) noexcept;
    [[nodiscard]] bool spill(std::size_t kind) noexcept;

    /// Gives the blocks of all caches to the heap behind; how many. drained: as put_behind().
    std::size_t reclaim(bool& drained) noexcept;

    /// Between these, blocks that are put go to the heap behind at once. They nest.
    void stop_caching() noexcept;
    void resume_caching() noexcept;

    /// Counts the blocks in caches by kind. Exact if no thread uses the heap.
    void count_cached(std::span<std::size_t> by_kind) noexcept;

    /// The calling thread's cache; nullptr: it has none.
    [[nodiscard]] block_cache* cache(std::size_t kind) const noexcept {
        block_cache* const first = hcamem_thread_1->of[id_].load(std::memory_order_relaxed);
        return first != nullptr ? first + kind : nullptr;
    }

    // -- the heap behind; a cache_set's lock may be held --
    /// Up to n blocks of a kind.
    virtual std::size_t take_behind(std::size_t kind, cached_block* blocks,
                                    std::size_t n) noexcept = 0;
    /// True: the last block of a closed heap is back. The caller then ends the heap, when it
    /// holds no lock any more.
    virtual bool put_behind(std::size_t kind, const cached_block* blocks,
                            std::size_t n) noexcept = 0;
    /// The block was given back by two threads at once, and one of them was to keep it.
    virtual void report_twice(const void* block) noexcept = 0;

  private:
    static cache_set& set_of(block_cache* first) noexcept;
    [[nodiscard]] cache_set* my_set() noexcept;
    [[nodiscard]] cache_set* make_set() noexcept;
    static void unlink(cache_set& ended) noexcept;
    static void compact(block_cache& cache) noexcept;
    std::size_t take_away(std::size_t kind, block_cache& cache, bool& drained) noexcept;
    [[nodiscard]] std::int32_t limit(const block_cache& cache) const noexcept {
        return stopped_.load(std::memory_order_relaxed) == 0 ? cache.capacity : 0;
    }

    const std::uint32_t id_;
    std::atomic<std::uint32_t> stopped_{0};
    std::span<const std::uint16_t> capacities_; // empty: no caches; process_page::caches
    cache_set* sets_ = nullptr;                 // process_page::caches
};

} // namespace hcamem::core

#endif
