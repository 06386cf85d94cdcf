// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A heap with a cache of free blocks in each thread that uses it. A block in a cache
// counts as handed out for the heap behind; it can be had by every thread nevertheless:
// emptied_caches takes the blocks out of all caches.
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

using detail::block_state;

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

    /// What a heap that notes its next blocks has for the state in the entries of those that
    /// it did not note yet: as that of a live one, so that refill() is called for them.
    [[nodiscard]] static block_state* not_noted() noexcept { return &not_noted_state; }
    static constexpr std::ptrdiff_t most_noted = 32;

    /// Whether the block is noted in the calling thread's cache, but was not taken yet.
    [[nodiscard]] bool is_noted(std::size_t kind, const void* block) const noexcept;

    /// From now on threads get caches: capacities[i] blocks each for blocks of kind i.
    void open_caches(std::span<const std::uint16_t> capacities) noexcept;
    /// Unmaps all caches, which are empty. No thread may use the heap meanwhile.
    void end_caches() noexcept;

    /// A block, live, that the calling thread's cache did not give. False: the heap behind
    /// has none either, or is closed.
    [[nodiscard]] bool refill(std::size_t kind, void*& block) noexcept;

    /// Puts a block into the calling thread's cache, or into the heap behind; after a
    /// block_cache::put() that failed, spill() instead. True: the heap has drained.
    [[nodiscard]] bool put_slowly(std::size_t kind, const cached_block& block) noexcept;
    [[nodiscard]] bool spill(std::size_t kind) noexcept;

    /// Gives the blocks of all caches to the heap behind. As long as it lives no cache is filled
    /// or spilled: what no thread has got is behind, so what is not found there is all out. A
    /// look at the caches and one at the heap behind would miss what goes to and fro meanwhile.
    class emptied_caches {
      public:
        explicit emptied_caches(cached_heap& heap) noexcept;
        emptied_caches(const emptied_caches&) = delete;
        emptied_caches& operator=(const emptied_caches&) = delete;
        ~emptied_caches();

        /// As put_behind(): the caller ends the heap, after this has ended.
        [[nodiscard]] bool drained() const noexcept { return drained_; }

      private:
        cached_heap& heap_;
        bool drained_ = false;
    };
    /// The same for a moment; true: the heap has drained.
    [[nodiscard]] bool reclaim() noexcept { return emptied_caches(*this).drained(); }

    /// As take_behind(), for a thread that wants more than a cache keeps.
    [[nodiscard]] std::size_t take_past_cache(std::size_t kind, cached_block* blocks,
                                              std::size_t n) noexcept;

    /// Between these, blocks that are put go to the heap behind at once. They nest.
    void stop_caching() noexcept;
    void resume_caching() noexcept;

    /// Counts the blocks in caches by kind. Exact if no thread uses the heap.
    void count_cached(std::span<std::size_t> by_kind) noexcept;

    /// The calling thread's cache; nullptr: it has none.
    [[nodiscard]] block_cache* cache(std::size_t kind) const noexcept {
        block_cache* const first = hcamem_thread_2->of[id_].load(std::memory_order_relaxed);
        return first != nullptr ? first + kind : nullptr;
    }

    /// The calling thread's arena: one that few others use. 0: it has no caches.
    [[nodiscard]] std::size_t arena() const noexcept {
        block_cache* const first = cache(0);
        return first != nullptr ? set_of(first).arena : 0;
    }

    // -- the heap behind; a cache_set's lock may be held --
    /// Up to n blocks of a kind.
    virtual std::size_t take_behind(std::size_t kind, cached_block* blocks,
                                    std::size_t n) noexcept = 0;
    /// The block on top of these will be taken now: its state becomes that of a live block.
    /// Those below it will be the next.
    virtual void hand_out(cached_block* bottom, cached_block* top) noexcept = 0;
    /// True: the last block of a closed heap is back. The caller then ends the heap, when it
    /// holds no lock any more.
    virtual bool put_behind(std::size_t kind, const cached_block* blocks,
                            std::size_t n) noexcept = 0;
    /// The block was given back by two threads at once, and one of them was to keep it.
    virtual void report_twice(const void* block) noexcept = 0;

  private:
    static bool is_twice(const cached_block& top) noexcept;
    static cache_set& set_of(block_cache* first) noexcept;
    [[nodiscard]] cache_set* my_set() noexcept;
    [[nodiscard]] cache_set* make_set() noexcept;
    [[nodiscard]] std::uint32_t least_used_arena() const noexcept;
    static void unlink(cache_set& ended) noexcept;
    static void move_down(cache_set& set, std::size_t kind, const cached_block* from) noexcept;
    void empty_caches(bool& drained) noexcept;
    bool take_away(cache_set& set, std::size_t kind) noexcept;
    /// How many blocks a cache may keep.
    [[nodiscard]] std::size_t limit(std::size_t kind) const noexcept {
        return stopped_.load(std::memory_order_relaxed) == 0 ? capacities_[kind] : 0;
    }

    static block_state not_noted_state; // never written
    const std::uint32_t id_;
    std::atomic<std::uint32_t> stopped_{0};
    std::span<const std::uint16_t> capacities_; // empty: no caches; process_page::caches
    cache_set* sets_ = nullptr;                 // process_page::caches
};

} // namespace hcamem::core

#endif
