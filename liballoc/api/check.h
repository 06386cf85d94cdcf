// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the C interface asks of a handle before anything else: is it this process's, which
// must be known before any lock, and is it alive?
#ifndef HCAMEM_API_CHECK_H
#define HCAMEM_API_CHECK_H

#include <cerrno>

#include "api/handle_cast.h"
#include "error/message.h"

namespace hcamem::core {

/// 0, or why it cannot be used: -ESTALE it is the parent's, -EINVAL it is dead or NULL.
inline int check(const hcamem_pool* handle) noexcept {
    if (handle == nullptr) {
        return fail_static(EINVAL, "the pool is NULL");
    }
    const pool* const core = to_core(handle);
    if (core->inherited()) {
        return fail_static(ESTALE,
                           "the pool belongs to the parent process; after a fork make a new one");
    }
    if (core->is_dead()) {
        return misuse(core->misuse_is_error(), "pool %p was closed before",
                      static_cast<const void*>(handle));
    }
    return 0;
}

inline int check(const hcamem_fixed* handle) noexcept {
    if (handle == nullptr) {
        return fail_static(EINVAL, "the buffer pool is NULL");
    }
    const fixed_pool* const core = to_core(handle);
    if (core->inherited()) {
        return fail_static(
            ESTALE, "the buffer pool belongs to the parent process; after a fork make a new one");
    }
    if (core->is_dead()) {
        return misuse(core->misuse_is_error(), "buffer pool %p was destroyed before",
                      static_cast<const void*>(handle));
    }
    return 0;
}

/// For what does nothing, successfully, in a child of the process that made the handle.
inline int in_child_done(int result) noexcept {
    return result == -ESTALE ? 0 : result;
}

} // namespace hcamem::core

#endif
