// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// One byte per block that says whether it is in the program's hands, found from the
// block's address without a division and without a lock: so each free can be checked.
//
//   page infos     one per page: where the states of the blocks that begin in it lie
//   their states   up to 16 in the info itself, where blocks have 1 KiB or more, else
//                  256 in a table behind all infos, which is present where it is used
//
// Blocks that begin in one page differ in address / 64, and in address / 1024 if they are
// that long.
#ifndef HCAMEM_HEAP_BLOCK_STATES_H
#define HCAMEM_HEAP_BLOCK_STATES_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <hcamem/detail/block_cache.hpp>

#include "heap/size_class.h"
#include "os/mapping.h"

namespace hcamem::core {

using detail::block_state;
using detail::cached_block;

class block_states {
  public:
    /// The state of a live block: blocks are 64 bytes apart at least, and that those of
    /// neighbours differ tells a block from an address inside one.
    static std::uint8_t live_state(const void* block) noexcept {
        return static_cast<std::uint8_t>(reinterpret_cast<std::uintptr_t>(block) / min_align |
                                         0x80);
    }
    static void set_live(const cached_block& taken) noexcept {
        taken.state->store(live_state(taken.block), std::memory_order_relaxed);
    }

    /// For blocks in [base, base + bytes). -ENOMEM with a message.
    int init(const std::byte* base, std::size_t bytes) noexcept;
    /// From now on no block is live.
    void reset() noexcept;

    /// The pages are cut into blocks of a class, none of them live; or no longer.
    void describe(std::size_t first, std::size_t pages, std::size_t class_index) noexcept;
    void forget(std::size_t first, std::size_t pages) noexcept;

    /// Of a block in a page that is cut into blocks.
    [[nodiscard]] block_state* state_of(const void* block) const noexcept {
        const page_info& info = infos_[offset_of(block) / page_bytes];
        return info.state_of(block, info.step.load(std::memory_order_relaxed));
    }

    struct freed {
        block_state* state;
        std::uint32_t class_index;
    };
    /// Turns a live block into a free one. False: it is not live, not a block, not in the
    /// range. Two threads that free one block at the same time may both succeed; the heap
    /// behind the caches finds out.
    [[nodiscard]] bool set_free(const void* block, freed& was) noexcept {
        const std::size_t offset = offset_of(block);
        if (offset >= bytes_) [[unlikely]] {
            return false;
        }
        const page_info& info = infos_[offset / page_bytes];
        const std::uint32_t step = info.step.load(std::memory_order_relaxed);
        if (step == 0) [[unlikely]] {
            return false;
        }
        block_state* const state = info.state_of(block, step);
        if (state->load(std::memory_order_relaxed) != live_state(block) || offset % min_align != 0)
            [[unlikely]] {
            return false;
        }
        state->store(0, std::memory_order_relaxed);
        was.state = state;
        was.class_index = info.class_index.load(std::memory_order_relaxed);
        return true;
    }

    [[nodiscard]] bool is_live(const void* block) const noexcept {
        const std::size_t offset = offset_of(block);
        if (offset >= bytes_ || offset % min_align != 0) {
            return false;
        }
        const page_info& info = infos_[offset / page_bytes];
        const std::uint32_t step = info.step.load(std::memory_order_relaxed);
        return step != 0 &&
               info.state_of(block, step)->load(std::memory_order_relaxed) == live_state(block);
    }

  private:
    static constexpr unsigned small_step = 6;
    static constexpr unsigned large_step = 10;

    /// Zero: the page is not cut into blocks. Whoever holds a live block may read its page's
    /// without a lock.
    struct page_info {
        // The state of the block at an address is at where + (address >> step).
        std::atomic<std::uintptr_t> where;
        std::atomic<std::uint32_t> class_index;
        std::atomic<std::uint32_t> step;
        std::array<block_state, (page_bytes >> large_step)> states;

        [[nodiscard]] block_state* state_of(const void* block, std::uint32_t by) const noexcept {
            // NOLINTNEXTLINE(performance-no-int-to-ptr): `where` is no address yet
            return reinterpret_cast<block_state*>(where.load(std::memory_order_relaxed) +
                                                  (reinterpret_cast<std::uintptr_t>(block) >> by));
        }
    };
    static_assert(sizeof(page_info) == 32);

    [[nodiscard]] std::size_t offset_of(const void* block) const noexcept {
        return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(block) -
                                        reinterpret_cast<std::uintptr_t>(base_));
    }

    const std::byte* base_ = nullptr;
    std::size_t bytes_ = 0;
    page_info* infos_ = nullptr;
    block_state* small_ = nullptr;
    mapping table_;
};

} // namespace hcamem::core

#endif
