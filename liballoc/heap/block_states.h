// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// One byte per block that says whether it is in the program's hands, found from the
// block's address without a division and without a lock: so each free can be checked.
//
//   page infos     one per page: where the states of the blocks that begin in it lie
//   their states   up to 16 in the info itself, where blocks have 1 KiB or more, else
//                  256 in a table behind all infos, which is present where it is used
//
// Addresses are counted in units of 64 bytes. Blocks that begin in one page differ in their
// unit, and in unit / 16 if they have 1 KiB or more.
#ifndef HCAMEM_HEAP_BLOCK_STATES_H
#define HCAMEM_HEAP_BLOCK_STATES_H

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <hcamem/detail/block_cache.hpp>

#include "heap/class_cache.h"
#include "heap/size_class.h"
#include "os/mapping.h"

namespace hcamem::core {

using detail::block_state;
using detail::cached_block;

class block_states {
  public:
    /// Of a block that is live.
    static std::uint8_t live_state(const void* block) noexcept {
        // The range begins at a multiple of all that is looked at.
        return live_at(reinterpret_cast<std::uintptr_t>(block) / min_align);
    }
    static void set_live(const cached_block& taken) noexcept {
        taken.state->store(live_state(taken.block), std::memory_order_relaxed);
    }

    /// For blocks in [base, base + bytes), both multiples of slab_unit. -ENOMEM with a message.
    int init(const std::byte* base, std::size_t bytes) noexcept;
    /// From now on no block is live.
    void reset() noexcept;

    /// The pages are cut into blocks of a class, none of them live; or no longer.
    void describe(std::size_t first, std::size_t pages, std::size_t class_index) noexcept;
    void forget(std::size_t first, std::size_t pages) noexcept;

    /// Of a block in a page that is cut into blocks.
    [[nodiscard]] block_state* state_of(const void* block) const noexcept {
        const page_info* const info = info_of(block);
        return info->state_of(unit_of(block), info->shift.load(std::memory_order_relaxed));
    }

    /// Turns a live block into a free one, and tells where its state and its class's cache
    /// are. False: it is not live, not a block, not in the range, or is_right(cache) says no.
    /// Two threads that free one block at the same time may both succeed; the heap behind the
    /// caches finds out.
    template <class IsRight>
    [[nodiscard, gnu::always_inline]] inline bool set_free(const void* block, block_state*& state,
                                                           cache_offset& cache,
                                                           IsRight is_right) const noexcept {
        const page_info* info; // NOLINT(cppcoreguidelines-init-variables): find_live() does
        if (!find_live(block, state, info)) [[unlikely]] {
            return false;
        }
        cache = info->cache.load(std::memory_order_relaxed);
        if (!is_right(cache)) [[unlikely]] {
            return false;
        }
        state->store(0, std::memory_order_relaxed);
        return true;
    }

    [[nodiscard]] bool is_live(const void* block) const noexcept {
        block_state* state = nullptr;
        const page_info* info = nullptr;
        return find_live(block, state, info);
    }

  private:
    static constexpr std::size_t units_per_page = page_bytes / min_align;
    static constexpr std::size_t large_unit = 1024;
    static constexpr unsigned large_shift = std::countr_zero(large_unit / min_align);

    /// The state of a live block that begins at a unit: that those of neighbouring units
    /// differ tells a block from an address inside one.
    static std::uint8_t live_at(std::size_t unit) noexcept {
        return static_cast<std::uint8_t>(unit | 0x80);
    }

    /// Zero: the page is not cut into blocks. Whoever holds a live block may read its page's
    /// without a lock.
    struct page_info {
        // The state of the block at a unit is at where + (unit >> shift).
        std::atomic<std::uintptr_t> where;
        std::atomic<cache_offset> cache;
        std::atomic<std::uint8_t> shift; // with is_cut
        std::array<block_state, page_bytes / large_unit> states;

        [[nodiscard]] block_state* state_of(std::size_t unit, unsigned by) const noexcept {
            // NOLINTNEXTLINE(performance-no-int-to-ptr): `where` is no address yet
            return reinterpret_cast<block_state*>(where.load(std::memory_order_relaxed) +
                                                  (unit >> (by % is_cut)));
        }
    };
    // What makes the shift of a page that is cut into blocks differ from zero, and what
    // shifting ignores.
    static constexpr unsigned is_cut = 64;
    static_assert(sizeof(page_info) == 32);

    /// The number of the address's 64 bytes; beyond all that there are if it does not lie at
    /// the start of them.
    [[nodiscard]] std::size_t unit_of(const void* block) const noexcept {
        return std::rotr(static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(block) -
                                                  reinterpret_cast<std::uintptr_t>(base_)),
                         std::countr_zero(min_align));
    }

    /// Of the page that the address, which is in the range, lies in. Which cache a block goes
    /// into is known only after this was read, and all that follows waits for it: it begins
    /// with the address itself, not with its distance from the base.
    [[nodiscard]] const page_info* info_of(const void* block) const noexcept {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): no address before it is complete
        return reinterpret_cast<const page_info*>(infos_at_zero_ +
                                                  reinterpret_cast<std::uintptr_t>(block) /
                                                      page_bytes * sizeof(page_info));
    }

    [[nodiscard, gnu::always_inline]] inline bool find_live(const void* block, block_state*& state,
                                                            const page_info*& info) const noexcept {
        const std::size_t unit = unit_of(block);
        if (unit >= units_) [[unlikely]] {
            return false;
        }
        info = info_of(block);
        const unsigned shift = info->shift.load(std::memory_order_relaxed);
        if (shift == 0) [[unlikely]] {
            return false;
        }
        state = info->state_of(unit, shift);
        return state->load(std::memory_order_relaxed) == live_at(unit);
    }

    const std::byte* base_ = nullptr;
    std::size_t units_ = 0;
    page_info* infos_ = nullptr;
    std::uintptr_t infos_at_zero_ = 0; // where that of the page at address 0 would lie
    block_state* small_ = nullptr;
    mapping table_;
};

} // namespace hcamem::core

#endif
