// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The C interface of buffer pools.
#include <cerrno>
#include <new>

#include <hcamem.h>

#include "api/check.h"

using namespace hcamem::core;

namespace {

int create(hcamem_pool* from, const fixed_pool::shape& wanted, hcamem_fixed*& made) noexcept {
    int result = check(from);
    if (result != 0) {
        return result;
    }
    try {
        idle_handles& idle = enter_process()->buffer_pools;
        fixed_pool* const core = handle<fixed_pool>::take(idle);
        result = core->open(*to_core(from), wanted);
        if (result != 0) {
            handle<fixed_pool>::retire(idle, core);
            return result;
        }
        made = to_handle(core);
        return 0;
    } catch (const std::bad_alloc&) {
        return fail_static(ENOMEM, "no memory to make a buffer pool");
    }
}

[[gnu::noinline]] void* get_slowly(hcamem_fixed* from, bool use_reserve) noexcept {
    void* buffer = nullptr;
    int result = check(from);
    if (result == 0) {
        result = to_core(from)->take(use_reserve, buffer);
    }
    if (result != 0) {
        errno = -result;
        return nullptr;
    }
    return buffer;
}

[[gnu::noinline]] void put_slowly(hcamem_fixed* from, void* buffer) noexcept {
    if (buffer == nullptr) {
        return;
    }
    int result = check(from);
    result = result != 0 ? in_child_done(result) : to_core(from)->put_back(buffer);
    if (result != 0) {
        errno = -result;
    }
}

} // namespace

hcamem_fixed* hcamem_fixed_create(hcamem_pool* pool, size_t bytes, size_t align, uint32_t max,
                                  uint32_t reserved) {
    hcamem_fixed* made = nullptr;
    const int result = create(pool, {bytes, align, max, reserved}, made);
    if (result != 0) {
        errno = -result;
    }
    return made;
}

int hcamem_fixed_destroy(hcamem_fixed* from) {
    if (from == nullptr) {
        return 0;
    }
    const int result = check(from);
    return result != 0 ? in_child_done(result) : to_core(from)->close();
}

void* hcamem_fixed_get(hcamem_fixed* from, int use_reserve) {
    void* buffer; // NOLINT(cppcoreguidelines-init-variables): set if it is returned
    if (from != nullptr && to_core(from)->get(buffer)) [[likely]] {
        return buffer;
    }
    return get_slowly(from, use_reserve != 0);
}

void hcamem_fixed_put(hcamem_fixed* from, void* buffer) {
    if (from != nullptr && to_core(from)->put(buffer)) [[likely]] {
        return;
    }
    put_slowly(from, buffer);
}

int hcamem_fixed_get_n(hcamem_fixed* from, void** buffers, size_t n, int use_reserve) {
    if (n == 0) {
        return 0;
    }
    if (buffers == nullptr) {
        return fail_static(EINVAL, "there is nowhere to put the buffers: buffers is NULL");
    }
    if (from != nullptr && to_core(from)->take_cached_n(buffers, n)) [[likely]] {
        return 0;
    }
    const int result = check(from);
    return result != 0 ? result : to_core(from)->take_n(use_reserve != 0, buffers, n);
}

int hcamem_fixed_put_n(hcamem_fixed* from, void* const* buffers, size_t n) {
    if (n == 0) {
        return 0;
    }
    if (buffers == nullptr) {
        return fail_static(EINVAL, "buffers is NULL");
    }
    if (from != nullptr && to_core(from)->put_cached_n(buffers, n)) [[likely]] {
        return 0;
    }
    const int result = check(from);
    return result != 0 ? in_child_done(result) : to_core(from)->put_back_n(buffers, n);
}

uint32_t hcamem_fixed_index(const hcamem_fixed* from, const void* buffer) {
    std::size_t index = 0;
    return check(from) == 0 && to_core(from)->is_buffer(buffer, index)
               ? static_cast<uint32_t>(index)
               : UINT32_MAX;
}

void* hcamem_fixed_at(const hcamem_fixed* from, uint32_t index) {
    return check(from) == 0 && index < to_core(from)->count() ? to_core(from)->at(index) : nullptr;
}

void hcamem_fixed_spill_2(hcamem_fixed* from) noexcept {
    to_core(from)->spill_cache();
}
