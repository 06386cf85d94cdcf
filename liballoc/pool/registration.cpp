// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <cerrno>

#include "error/message.h"
#include "pool/pool.h"

namespace hcamem::core {

int pool::attach(std::unique_ptr<registrar> with, binding*& made) {
    process_page* const process = enter_process();
    const std::lock_guard guard(growth_);
    if (!is_open()) {
        return closed_error();
    }
    binding* const fresh = handle<binding>::take(process->bindings);
    const binding::place where{.owner = this,
                               .base = range_.data(),
                               .bytes = range_.size(),
                               .generation = generation_.load(std::memory_order_relaxed),
                               .misuse_is_error = misuse_is_error_};
    int result = fresh->open(where, std::move(with));
    if (result != 0) {
        handle<binding>::retire(process->bindings, fresh);
        return result;
    }
    for (slab each = slabs_.next(0); each.state != slab_state::none && result == 0;
         each = slabs_.next(each.unit + each.units)) {
        if (each.state == slab_state::active) {
            result = fresh->add(each, *source_);
        }
    }
    fresh->next = bindings_;
    bindings_ = fresh;
    if (result != 0) {
        end_binding(*fresh);
        return result;
    }
    made = fresh;
    return 0;
}

int pool::detach(binding& ended) noexcept {
    const std::lock_guard guard(growth_);
    if (ended.owner() != this) {
        return misuse(misuse_is_error_, "the binding was detached before");
    }
    return end_binding(ended);
}

/// Deregisters all slabs and ends the binding, or leaves it attached where one slab stays.
int pool::end_binding(binding& ended) noexcept {
    int first_error = 0;
    for (slab each = slabs_.next(0); each.state != slab_state::none;
         each = slabs_.next(each.unit + each.units)) {
        const int result = each.state != slab_state::lost ? ended.remove(each) : 0;
        first_error = first_error == 0 ? result : first_error;
    }
    if (first_error != 0) {
        return first_error;
    }
    binding** link = &bindings_;
    while (*link != &ended) {
        link = &(*link)->next;
    }
    *link = ended.next;
    ended.close();
    handle<binding>::retire(enter_process()->bindings, &ended);
    retire_handle(); // where the pool was only kept for its bindings
    return 0;
}

} // namespace hcamem::core
