// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The C interface's opaque handles are the addresses of the library's objects.
#ifndef HCAMEM_API_HANDLE_CAST_H
#define HCAMEM_API_HANDLE_CAST_H

#include <hcamem.h>

#include "fixed/fixed_pool.h"
#include "pool/binding.h"
#include "pool/pool.h"

namespace hcamem::core {

inline pool* to_core(hcamem_pool* handle) noexcept {
    return reinterpret_cast<pool*>(handle);
}
inline const pool* to_core(const hcamem_pool* handle) noexcept {
    return reinterpret_cast<const pool*>(handle);
}
inline hcamem_pool* to_handle(pool* core) noexcept {
    return reinterpret_cast<hcamem_pool*>(core);
}

inline binding* to_core(hcamem_binding* handle) noexcept {
    return reinterpret_cast<binding*>(handle);
}
inline const binding* to_core(const hcamem_binding* handle) noexcept {
    return reinterpret_cast<const binding*>(handle);
}
inline hcamem_binding* to_handle(binding* core) noexcept {
    return reinterpret_cast<hcamem_binding*>(core);
}

// What buffer_pool inlines takes the handle for the front of the object.
inline fixed_pool* to_core(hcamem_fixed* handle) noexcept {
    return static_cast<fixed_pool*>(reinterpret_cast<detail::fixed_head*>(handle));
}
inline const fixed_pool* to_core(const hcamem_fixed* handle) noexcept {
    return static_cast<const fixed_pool*>(reinterpret_cast<const detail::fixed_head*>(handle));
}
inline hcamem_fixed* to_handle(fixed_pool* core) noexcept {
    return reinterpret_cast<hcamem_fixed*>(static_cast<detail::fixed_head*>(core));
}

} // namespace hcamem::core

#endif
