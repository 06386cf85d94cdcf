// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What an hcamem_fixed* points to, as far as buffer_pool inlines its use. Not for direct
// use; part of the library's ABI as block_cache.hpp is.
#ifndef HCAMEM_DETAIL_FIXED_HEAD_HPP
#define HCAMEM_DETAIL_FIXED_HEAD_HPP

#include <cstddef>
#include <cstdint>

#include <hcamem.h>
#include <hcamem/detail/block_cache.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

extern "C" {
/// The calling thread's cache is over its limit.
HCAMEM_API void hcamem_fixed_spill_1(hcamem_fixed* from) noexcept;
}

namespace hcamem::detail {

struct fixed_head {
    static constexpr std::uint8_t live = 1; // the state of a buffer that is out

    const std::byte* base = nullptr; // of the first buffer
    std::size_t cacheable_bytes = 0; // from there on, without the reserve; 0: destroyed
    std::size_t stride = 0;          // from one buffer to the next
    std::uint64_t reciprocal = 0;    // 2^64 / stride, rounded up: exact for all offsets
    block_state* states = nullptr;   // one per buffer
    std::uint32_t cache_id = 0;
    bool annotated = false; // the library tells AddressSanitizer which buffers are free

    [[nodiscard]] std::size_t offset_of(const void* buffer) const noexcept {
        return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(buffer) -
                                        reinterpret_cast<std::uintptr_t>(base));
    }
    [[nodiscard]] std::size_t index_of(std::size_t offset) const noexcept {
        __extension__ using wide = unsigned __int128;
        return static_cast<std::size_t>((wide{offset} * reciprocal) >> 64);
    }
    [[nodiscard]] block_cache* cache() const noexcept {
        return hcamem_thread_1->of[cache_id].load(std::memory_order_relaxed);
    }

    void annotate_live([[maybe_unused]] const void* buffer) const noexcept {
#if defined(__SANITIZE_ADDRESS__)
        if (annotated) {
            __asan_unpoison_memory_region(buffer, stride);
        }
#endif
    }
    void annotate_free([[maybe_unused]] const void* buffer) const noexcept {
#if defined(__SANITIZE_ADDRESS__)
        if (annotated) {
            __asan_poison_memory_region(buffer, stride);
        }
#endif
    }

    /// Whether the address is a live buffer that a cache may keep, which then is free.
    [[nodiscard, gnu::always_inline]] inline bool set_free(const void* buffer,
                                                           cached_block& freed) const noexcept {
        const std::size_t offset = offset_of(buffer);
        const std::size_t index = index_of(offset);
        if (offset >= cacheable_bytes || index * stride != offset) [[unlikely]] {
            return false;
        }
        block_state* const state = states + index;
        if (state->load(std::memory_order_relaxed) != live) [[unlikely]] {
            return false;
        }
        state->store(0, std::memory_order_relaxed);
        annotate_free(buffer);
        freed = {const_cast<void*>(buffer), state};
        return true;
    }

    // -- what the calling thread's cache can do; false: the library must see to it --
    [[nodiscard, gnu::always_inline]] inline bool get(void*& buffer) const noexcept {
        block_cache* const mine = cache();
        cached_block taken;
        if (mine == nullptr || !mine->take(taken)) [[unlikely]] {
            return false;
        }
        taken.state->store(live, std::memory_order_relaxed);
        annotate_live(taken.block);
        buffer = taken.block;
        return true;
    }

    [[nodiscard, gnu::always_inline]] inline bool put(void* buffer) noexcept {
        block_cache* const mine = cache();
        cached_block freed;
        if (mine == nullptr || !set_free(buffer, freed)) [[unlikely]] {
            return false;
        }
        if (!mine->put(freed)) [[unlikely]] {
            hcamem_fixed_spill_1(reinterpret_cast<hcamem_fixed*>(this));
        }
        return true;
    }
};

} // namespace hcamem::detail

#endif
