// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Tells AddressSanitizer which bytes of a slab belong to a live block, where the
// library is built with it. Nothing otherwise.
#ifndef HCAMEM_HEAP_ANNOTATE_H
#define HCAMEM_HEAP_ANNOTATE_H

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace hcamem::core {

#if defined(__SANITIZE_ADDRESS__)
inline void annotate_free(const void* address, std::size_t bytes) noexcept {
    __asan_poison_memory_region(address, bytes);
}
inline void annotate_live(const void* address, std::size_t bytes) noexcept {
    __asan_unpoison_memory_region(address, bytes);
}
#else
inline void annotate_free(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
inline void annotate_live(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
#endif

/// Before another mapping may come to lie there.
inline void annotate_unmapped(const void* address, std::size_t bytes) noexcept {
    annotate_live(address, bytes);
}

} // namespace hcamem::core

#endif
