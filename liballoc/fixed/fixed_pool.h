// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Buffers of one size, cut from one block of a pool. The last of them are the reserve,
// which no cache keeps and only those get that ask for it.
//
// Life, as a pool's:  dead -> open -> draining -> dead
// Locks: a cache_set's, then lock_.
#ifndef HCAMEM_FIXED_FIXED_POOL_H
#define HCAMEM_FIXED_FIXED_POOL_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <hcamem/detail/fixed_head.hpp>

#include "cache/cached_heap.h"
#include "os/mapping.h"
#include "os/short_mutex.h"
#include "pool/handles.h"

namespace hcamem::core {

using detail::block_state;

class pool;

// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): final, and never deleted
class fixed_pool final : public detail::fixed_head, public handle<fixed_pool>, private cached_heap {
  public:
    struct shape {
        std::size_t bytes; // of a buffer
        std::size_t align; // 0: 64
        std::uint32_t count;
        std::uint32_t reserved; // of count
    };
    /// 0, or -errno with a message and the buffer pool dead.
    int open(pool& from, const shape& wanted) noexcept;
    /// 0, or -EBUSY: buffers are out, and the last one that comes back ends it.
    int close() noexcept;

    /// What the calling thread's cache can do, as get(); false: put_back() must see to it.
    [[nodiscard, gnu::always_inline]] inline bool put(void* buffer) noexcept {
        return fixed_head::put(
            reinterpret_cast<hcamem_fixed*>(static_cast<fixed_head*>(this)), buffer,
            [this, buffer](std::uint8_t state) { return state == noted && !is_noted(0, buffer); });
    }
    int take(bool use_reserve, void*& buffer) noexcept;
    int put_back(void* buffer) noexcept;
    void spill_cache() noexcept;

    // -- many at once: fixed_bulk.cpp --
    /// All or none.
    int take_n(bool use_reserve, void** buffers, std::size_t n) noexcept;
    /// nullptr entries are skipped; -EINVAL: one was not out, the others are back.
    int put_back_n(void* const* buffers, std::size_t n) noexcept;
    /// What the calling thread's cache can do; false: nothing was done.
    [[nodiscard]] bool take_cached_n(void** buffers, std::size_t n) noexcept;
    [[nodiscard]] bool put_cached_n(void* const* buffers, std::size_t n) noexcept;

    [[nodiscard]] bool inherited() const noexcept;
    [[nodiscard]] bool is_dead() const noexcept {
        return count_.load(std::memory_order_relaxed) == 0;
    }
    [[nodiscard]] bool misuse_is_error() const noexcept;
    [[nodiscard]] std::uint32_t count() const noexcept {
        return count_.load(std::memory_order_relaxed);
    }
    /// Whether a buffer begins at the address.
    [[nodiscard]] bool is_buffer(const void* address, std::size_t& index) const noexcept {
        return find(address, index) && index < count();
    }
    [[nodiscard]] void* at(std::uint32_t index) const noexcept {
        return const_cast<std::byte*>(base) + index * stride;
    }

  private:
    /// A stack of the indices of free buffers, in both of two tables.
    struct free_list {
        std::uint32_t* indices = nullptr;
        std::uint32_t count = 0;
    };

    int make_tables(const shape& wanted) noexcept;
    bool take_what_is_kept(void*& buffer) noexcept;
    bool take_reserved(void*& buffer) noexcept;
    int exhausted(bool use_reserve) noexcept;
    /// Of a buffer.
    [[nodiscard]] std::size_t number_of(const void* buffer) const noexcept {
        std::size_t number = 0;
        static_cast<void>(find(buffer, number));
        return number;
    }
    [[nodiscard]] block_state* state_to_note(const cached_block& taken) const noexcept;
    bool take_scattered(const cached_block* taken, void** buffers, std::size_t n) noexcept;
    bool free_run(void* const* buffers, std::size_t n, cached_block* freed) noexcept;
    bool push(free_list& list, std::size_t index) noexcept;
    [[nodiscard]] bool all_back() const noexcept;
    void report_out() const noexcept;
    void end() noexcept;
    std::size_t take_behind(std::size_t kind, cached_block* blocks,
                            std::size_t n) noexcept override;
    void hand_out(cached_block* bottom, cached_block* top) noexcept override;
    bool put_behind(std::size_t kind, const cached_block* blocks, std::size_t n) noexcept override;
    void report_twice(const void* block) noexcept override;

    std::atomic<std::uint32_t> count_{0}; // 0: dead
    pool* pool_ = nullptr;
    std::array<std::uint16_t, 1> capacity_{};

    alignas(64) short_mutex lock_; // guards all below
    bool closed_ = true;
    free_list free_;
    free_list reserve_;
    bool* behind_ = nullptr; // per buffer: whether it is in one of the lists
    mapping tables_;
};

} // namespace hcamem::core

#endif
