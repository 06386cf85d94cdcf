// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <algorithm>

#include "error/message.h"
#include "pool/pool.h"

namespace hcamem::core {

std::uint64_t pool::trim(std::uint64_t keep) noexcept {
    return give_back_idle(UINT64_MAX, keep);
}

/// Gives idle slabs back until that are `wanted` bytes, or `keep` bytes of them are left.
std::uint64_t pool::give_back_idle(std::uint64_t wanted, std::uint64_t keep) noexcept {
    reclaim_all();
    release_idle_spans();
    const std::lock_guard guard(growth_);
    if (!is_open()) {
        return 0;
    }
    std::uint64_t idle = 0;
    for (slab each = slabs_.next(0); each.state != slab_state::none;
         each = slabs_.next(each.unit + each.units)) {
        if (each.state == slab_state::active && pages_.is_idle(each.unit, each.units)) {
            idle += each.bytes();
        }
    }
    const std::uint64_t goal = std::min(wanted, idle - std::min(idle, keep));
    std::uint64_t given_back = 0;
    for (slab each = slabs_.next(0); each.state != slab_state::none;
         each = slabs_.next(each.unit + each.units)) {
        if (each.state == slab_state::active) {
            if (given_back >= goal || !pages_.remove_idle_slab(each.unit, each.units)) {
                continue;
            }
            slabs_.set_state(each.unit, slab_state::retired);
        } else if (each.state != slab_state::retired) {
            continue;
        }
        if (give_back_slab(each)) {
            given_back += each.bytes();
        }
    }
    return given_back;
}

/// Deregisters and unmaps a slab that is out of the page heap. False: it stays retired.
bool pool::give_back_slab(const slab& idle) noexcept {
    if (deregister_slab(idle) != 0) {
        return false;
    }
    annotate_unmapped(address_of(idle), idle.bytes());
    if (!unmap_to_reserved(address_of(idle), idle.bytes())) {
        return false;
    }
    slabs_.remove(idle.unit);
    return true;
}

/// From all bindings that have it; the first error, after trying all.
int pool::deregister_slab(const slab& removed) noexcept {
    int first_error = 0;
    for (binding* each = bindings_; each != nullptr; each = each->next) {
        const int result = each->remove(removed);
        first_error = first_error == 0 ? result : first_error;
    }
    return first_error;
}

} // namespace hcamem::core
