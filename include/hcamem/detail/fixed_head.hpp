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
HCAMEM_API void hcamem_fixed_spill_2(hcamem_fixed* from) noexcept;
}

namespace hcamem::detail {

struct fixed_head {
    // States of a buffer that is out, or in the second case is noted in a thread's cache.
    static constexpr std::uint8_t live = 1;
    static constexpr std::uint8_t noted = 2;

    const std::byte* base = nullptr; // of the first buffer
    std::size_t cacheable = 0;       // buffers from there on, without the reserve; 0: destroyed
    std::size_t stride = 0;          // from one buffer to the next
    std::uint64_t reciprocal = 0;    // 2^64 / stride, rounded up: exact for all offsets
    block_state* states = nullptr;   // one per buffer
    std::uint32_t cache_id = 0;
    bool annotated = false; // the library tells AddressSanitizer which buffers are free

    [[nodiscard]] std::size_t offset_of(const void* buffer) const noexcept {
        return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(buffer) -
                                        reinterpret_cast<std::uintptr_t>(base));
    }
    /// Whether a buffer begins there, if its number is below the count. One multiplication
    /// gives number and fraction of offset / stride, with an error of less than number /
    /// 2^64; so the fraction of a whole number is smaller than that of any other while
    /// number < 2^64 / stride^2.
    [[nodiscard, gnu::always_inline]] inline bool find(const void* buffer,
                                                       std::size_t& index) const noexcept {
        __extension__ using wide = unsigned __int128;
        const std::size_t offset = offset_of(buffer);
        index = static_cast<std::size_t>((wide{offset} * reciprocal) >> 64);
        return offset * reciprocal < reciprocal;
    }
    [[nodiscard]] block_cache* cache() const noexcept {
        return hcamem_thread_2->of[cache_id].load(std::memory_order_relaxed);
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
    /// is_out(state) says for other states than `live` whether they are a live buffer's.
    template <class IsOut>
    [[nodiscard, gnu::always_inline]] inline bool set_free(const void* buffer, block_state*& freed,
                                                           IsOut is_out) const noexcept {
        std::size_t index = 0;
        if (!find(buffer, index) || index >= cacheable) [[unlikely]] {
            return false;
        }
        block_state* const state = states + index;
        const std::uint8_t value = state->load(std::memory_order_relaxed);
        if (value != live && !is_out(value)) [[unlikely]] {
            return false;
        }
        state->store(0, std::memory_order_relaxed);
        annotate_free(buffer);
        freed = state;
        return true;
    }

    // -- what the calling thread's cache can do; false: the library must see to it --
    [[nodiscard, gnu::always_inline]] inline bool get(void*& buffer) const noexcept {
        block_cache* const mine = cache();
        const auto live_state = [](const void* /*buffer*/) { return live; };
        if (mine == nullptr || !mine->take<true>(buffer, live_state)) [[unlikely]] {
            return false;
        }
        annotate_live(buffer);
        return true;
    }

    template <class IsOut>
    [[nodiscard, gnu::always_inline]] inline bool put(hcamem_fixed* self, void* buffer,
                                                      IsOut is_out) const noexcept {
        block_cache* const mine = cache();
        if (mine == nullptr) [[unlikely]] {
            return false;
        }
        cached_block* const into = mine->next();
        into->block = buffer;
        if (!set_free(buffer, into->state, is_out)) [[unlikely]] {
            return false;
        }
        if (!mine->publish(into + 1)) [[unlikely]] {
            hcamem_fixed_spill_2(self);
        }
        return true;
    }
};

} // namespace hcamem::detail

#endif
