// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What an hcamem_binding* points to, as far as binding inlines its use. Not for direct use;
// part of the library's ABI as block_cache.hpp is.
#ifndef HCAMEM_DETAIL_BINDING_HEAD_HPP
#define HCAMEM_DETAIL_BINDING_HEAD_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <hcamem.h>

namespace hcamem::detail {

/// Constant while the binding is attached.
struct binding_head {
    static constexpr unsigned unit_shift = 21;
    static_assert(HCAMEM_SLAB_UNIT == std::size_t{1} << unit_shift);

    std::byte* base = nullptr; // of the range that slabs lie in
    std::size_t bytes = 0;     // of that range
    // Per HCAMEM_SLAB_UNIT: rkey << 32 | lkey; 0: no slab. A child of fork() finds zeros.
    std::atomic<std::uint64_t>* keys = nullptr;

    [[nodiscard]] std::uint64_t keys_at(const void* address) const noexcept {
        const auto offset = static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(address) -
                                                     reinterpret_cast<std::uintptr_t>(base));
        return offset < bytes ? keys[offset >> unit_shift].load(std::memory_order_acquire) : 0;
    }
    [[nodiscard]] std::uint32_t lkey(const void* address) const noexcept {
        return static_cast<std::uint32_t>(keys_at(address));
    }
    [[nodiscard]] std::uint32_t rkey(const void* address) const noexcept {
        return static_cast<std::uint32_t>(keys_at(address) >> 32);
    }
};

} // namespace hcamem::detail

#endif
