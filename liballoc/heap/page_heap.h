// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Hands out spans of pages from the slabs: best fit, neighbours merged, never
// across the border of two slabs.
#ifndef HCAMEM_HEAP_PAGE_HEAP_H
#define HCAMEM_HEAP_PAGE_HEAP_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "heap/block_states.h"
#include "heap/size_class.h"
#include "heap/span.h"
#include "os/mapping.h"
#include "os/short_mutex.h"

namespace hcamem::core {

inline constexpr std::size_t pages_per_unit = slab_unit / page_bytes;

class page_heap {
  public:
    /// For slabs in [base, base + bytes), both multiples of slab_unit. -ENOMEM with a message.
    int init(std::byte* base, std::size_t bytes, block_states& states) noexcept;
    /// Forgets everything. No other call may be under way or follow, but init().
    void reset() noexcept;

    // -- slabs: the pool's growth lock is held --
    void add_slab(std::size_t unit, std::size_t units) noexcept;
    /// Takes the slab out if no block lies in it. False: one does.
    bool remove_idle_slab(std::size_t unit, std::size_t units) noexcept;
    [[nodiscard]] bool is_idle(std::size_t unit, std::size_t units) noexcept;

    // -- spans --
    /// Up to n spans for the class, with all blocks free; fewer: no room. The class's lock is
    /// held.
    [[nodiscard]] std::size_t take_blocks(std::size_t class_index, std::size_t arena,
                                          std::uint32_t* firsts, std::size_t n) noexcept;
    /// The span of blocks is another arena's now. Both class's locks are held.
    void set_arena(std::uint32_t first, std::size_t arena) noexcept;
    /// Gives back spans all of whose blocks are free, linked by `next`. The class's lock is
    /// held.
    void put_blocks(std::uint32_t first) noexcept;

    enum class result : std::uint8_t { done, no_room, draining };
    /// A large block. `align` is a multiple of page_bytes.
    result take_large(std::size_t pages, std::size_t align, std::uint32_t& first) noexcept;
    /// Gives one back if it is one and, where pages is not 0, has as many.
    verdict put_large(std::uint32_t first, std::size_t pages, bool& drains) noexcept;
    /// Whether a span could be had now.
    [[nodiscard]] bool has_room(std::size_t pages, std::size_t align) noexcept;

    /// From now on take_large() fails and put_large() reports that it drains. Returns the
    /// large blocks that are live.
    std::uint64_t drain() noexcept;

    struct usage {
        std::uint64_t blocks = 0;
        std::uint64_t bytes = 0;
    };
    [[nodiscard]] usage large_usage() noexcept;

    // -- look-up, without a lock --
    /// Whether the address is in the reserved range.
    [[nodiscard]] bool in_range(const void* address) const noexcept {
        return offset_of(address) < bytes_;
    }
    /// First unit of the slab that holds the address, which is in the range; no_page: none.
    [[nodiscard]] std::uint32_t slab_of(const void* address) const noexcept {
        return slab_[offset_of(address) / slab_unit].load(std::memory_order_relaxed) - 1;
    }
    [[nodiscard]] std::size_t offset_of(const void* address) const noexcept {
        return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(address) -
                                        reinterpret_cast<std::uintptr_t>(base_));
    }
    [[nodiscard]] std::byte* page_address(std::uint32_t page) const noexcept {
        return base_ + page * page_bytes;
    }
    /// First page of the span of blocks or the large block that covers the page; no_page: none.
    [[nodiscard]] std::uint32_t first_page(std::size_t page, span_head& head) const noexcept;

    [[nodiscard]] block_state* state_of(const void* block) const noexcept {
        return states_->state_of(block);
    }
    [[nodiscard]] span& at(std::uint32_t first) const noexcept { return spans_[first]; }
    [[nodiscard]] std::byte* base() const noexcept { return base_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  private:
    // One bin per number of pages up to 64, then 8 per doubling.
    static constexpr std::size_t exact_bins = 64;
    static constexpr std::size_t large_span = pages_per_unit / 8;
    static constexpr std::size_t bins_per_doubling = 8;
    static constexpr std::size_t bin_count = exact_bins + 26 * bins_per_doubling;
    static std::size_t bin_of(std::size_t pages) noexcept;
    void cut(std::uint32_t first, std::size_t class_index, std::size_t arena) noexcept;

    [[nodiscard]] std::uint32_t find(std::size_t pages, std::size_t align_pages,
                                     std::uint32_t& start) const noexcept;
    [[nodiscard]] std::uint32_t take(std::size_t pages, std::size_t align_pages) noexcept;
    void put(std::uint32_t first, std::uint32_t pages) noexcept;
    void insert_free(std::uint32_t first, std::uint32_t pages) noexcept;
    void remove_free(std::uint32_t first) noexcept;
    [[nodiscard]] bool begins_slab(std::uint32_t page) const noexcept;
    void set_first(std::uint32_t page, std::uint32_t first) noexcept {
        first_[page].store(first + 1, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint32_t get_first(std::size_t page) const noexcept {
        return first_[page].load(std::memory_order_relaxed) - 1; // 0 becomes no_page
    }

    std::byte* base_ = nullptr;
    std::size_t bytes_ = 0;
    block_states* states_ = nullptr;
    span* spans_ = nullptr;                       // one per page
    std::atomic<std::uint32_t>* first_ = nullptr; // one per page: its span's first page + 1
    std::atomic<std::uint32_t>* slab_ = nullptr;  // one per unit: its slab's first unit + 1

    alignas(64) short_mutex lock_; // guards all below
    bool draining_ = false;
    usage large_;
    std::array<std::uint64_t, (bin_count + 63) / 64> nonempty_{};
    std::array<std::uint32_t, bin_count> bins_{};
    mapping span_table_;
    mapping first_table_;
    mapping slab_table_;
};

} // namespace hcamem::core

#endif
