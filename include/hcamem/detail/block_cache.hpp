// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A thread's cache of free blocks: what buffer_pool inlines, and the library itself.
// Not for direct use. The layout belongs to the library's ABI: the number at the end of
// hcamem_thread_2 changes with it, so that a program built for another does not link.
//
// Only the owner puts blocks in and takes them out, at the top, without an atomic
// read-modify-write. Another thread may take blocks away at the bottom, and may lower the
// limit. Both sides first write what is theirs and then read what is the other's:
//
//   owner takes one       --top,  then reads bottom: at or above it the block is the owner's
//   owner puts one        ++top,  then reads limit:  above it the library is called
//   another takes blocks  raises bottom, membarrier(), reads top: what lies below both is its
//
// The other's membarrier() (PRIVATE_EXPEDITED) has a full fence in every running thread of
// the process, so the owner needs none between its write and its read; it must only keep
// the compiler from exchanging them.
#ifndef HCAMEM_DETAIL_BLOCK_CACHE_HPP
#define HCAMEM_DETAIL_BLOCK_CACHE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hcamem::detail {

/// Between the owner's write and its read.
inline void order_with_membarrier() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

#if defined(__SANITIZE_THREAD__) // which does not know membarrier()
inline constexpr std::memory_order owner_order = std::memory_order_seq_cst;
inline constexpr std::memory_order publish_order = std::memory_order_seq_cst;
inline constexpr std::memory_order other_order = std::memory_order_seq_cst;
#else
inline constexpr std::memory_order owner_order = std::memory_order_relaxed;
inline constexpr std::memory_order publish_order = std::memory_order_release;
inline constexpr std::memory_order other_order = std::memory_order_acquire;
#endif

/// Whether a block is in the program's hands: 0, or what its heap has for that.
using block_state = std::atomic<std::uint8_t>;

/// A block with its state, which does not lie in the block: that is DMA memory.
///
/// A block that is taken is noted in its state. A heap may note those that a thread takes
/// next at once: one by one, a thread that only takes and one that only puts would pass the
/// cache line of the states of neighbouring blocks to and fro with each block.
struct cached_block {
    void* block;
    block_state* state; // nullptr: noted already

    [[nodiscard]] bool is_live() const noexcept {
        return state->load(std::memory_order_relaxed) != 0;
    }
};

/// Positions are addresses of entries: that saves each use a load and the scaling.
struct alignas(32) block_cache {
    std::atomic<cached_block*> top;    // the blocks in [bottom, top) are free; the owner's
    std::atomic<cached_block*> limit;  // of top; lowered by others. Behind it is room for one
    std::atomic<cached_block*> bottom; // raised by others
    cached_block* blocks;              // the first entry

    /// Takes a block, whose state is live_state(block) then. False: there is none; or its
    /// state is that of a block that is not to be taken like this: it lies in two caches, or
    /// did, since two threads have freed it at the same time; or the library must note it.
    /// `notes`: whether blocks can be noted already.
    template <bool notes, class LiveState>
    [[nodiscard, gnu::always_inline]] inline bool take(void*& block,
                                                       LiveState live_state) noexcept {
        cached_block* const last = top.load(std::memory_order_relaxed) - 1;
        top.store(last, owner_order);
        order_with_membarrier();
        if (last >= bottom.load(owner_order)) [[likely]] {
            const cached_block taken = *last;
            if (notes && taken.state == nullptr) {
                block = taken.block;
                return true;
            }
            if (!taken.is_live()) [[likely]] {
                taken.state->store(live_state(taken.block), std::memory_order_relaxed);
                block = taken.block;
                return true;
            }
        }
        top.store(last + 1, std::memory_order_relaxed);
        return false;
    }

    /// The first of n blocks that lie one behind the other and are the caller's until it
    /// puts something in; nullptr: there are not so many. It does not look whether they are
    /// live; untake_n() puts them all back.
    [[nodiscard]] const cached_block* take_n(std::size_t n) noexcept {
        cached_block* const before = top.load(std::memory_order_relaxed);
        if (n > static_cast<std::size_t>(before - blocks)) {
            return nullptr;
        }
        cached_block* const first = before - n;
        top.store(first, owner_order);
        order_with_membarrier();
        if (first < bottom.load(owner_order)) [[unlikely]] {
            top.store(before, std::memory_order_relaxed);
            return nullptr;
        }
        return first;
    }
    void untake_n(std::size_t n) noexcept {
        top.store(top.load(std::memory_order_relaxed) + n, publish_order);
    }

    /// False: it is in, but now some must be given back.
    [[nodiscard, gnu::always_inline]] inline bool put(const cached_block& block) noexcept {
        cached_block* const into = next();
        *into = block;
        return publish(into + 1);
    }

    /// Where the owner can write one more block. publish() puts it in.
    [[nodiscard, gnu::always_inline]] inline cached_block* next() noexcept {
        return top.load(std::memory_order_relaxed);
    }
    /// The same for n blocks; nullptr: there is no room.
    [[nodiscard]] cached_block* room(std::size_t n) noexcept {
        cached_block* const into = next();
        const std::ptrdiff_t room = limit.load(std::memory_order_relaxed) - into;
        return static_cast<std::ptrdiff_t>(n) <= room ? into : nullptr;
    }
    /// False: they are in, but now some must be given back.
    [[nodiscard, gnu::always_inline]] inline bool publish(cached_block* new_top) noexcept {
        // Release: another thread takes blocks away without the owner's doing.
        top.store(new_top, publish_order);
        order_with_membarrier();
        return new_top <= limit.load(owner_order);
    }
};

static_assert(std::atomic<cached_block*>::is_always_lock_free);
static_assert(sizeof(block_cache) == 32 && sizeof(block_state) == 1);

/// So many pools and buffer pools with caches can exist in a process.
inline constexpr std::size_t max_heaps = 4096;

/// A thread's caches, by heap: one for a buffer pool, one per size class for a pool. In
/// memory that a child of fork() finds zeroed: there it has none.
struct thread_caches {
    std::atomic<block_cache*> of[max_heaps];
};

} // namespace hcamem::detail

extern "C" {
/// The calling thread's; before it has any, an empty one. Never NULL.
[[gnu::tls_model("initial-exec")]] extern __thread hcamem::detail::thread_caches* hcamem_thread_2;
}

#endif
