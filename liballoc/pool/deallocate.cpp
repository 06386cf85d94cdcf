// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "error/message.h"
#include "heap/annotate.h"
#include "pool/pool.h"

namespace hcamem::core {

int pool::deallocate(void* block) noexcept {
    return give_back(block, nullptr);
}

int pool::deallocate_sized(void* block, std::size_t bytes, std::size_t align) noexcept {
    request expected{};
    const int result = plan(bytes, align, expected);
    if (result != 0) {
        return misuse(misuse_is_error_, "block %p cannot be one of %zu bytes aligned to %zu: %s",
                      block, bytes, align, last_message());
    }
    return give_back(block, &expected);
}

int pool::give_back(void* block, const request* expected) noexcept {
    bool drains = false;
    const verdict what = put(block, expected, drains);
    if (what != verdict::done) {
        return report(what, block, expected);
    }
    if (!drains) {
        freed_.notify();
    } else if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        finish_drain();
    }
    return 0;
}

verdict pool::put(void* block, const request* expected, bool& drains) noexcept {
    if (!pages_.in_range(block)) {
        return verdict::foreign;
    }
    const std::size_t page = pages_.offset_of(block) / page_bytes;
    span_head head;
    const std::uint32_t first = pages_.first_page(page, head);
    if (first == no_page) {
        return verdict::not_live;
    }
    // Before the block is given back: afterwards it may be another thread's.
    if (head.kind == span_kind::blocks) {
        if (expected != nullptr && expected->class_index != head.class_index) {
            return verdict::wrong_size;
        }
        return classes_[head.class_index].put(block, first, drains);
    }
    if (block != pages_.page_address(first)) {
        return verdict::not_a_start;
    }
    if (expected != nullptr && !expected->is_large()) {
        return verdict::wrong_size;
    }
    return pages_.put_large(first, expected != nullptr ? expected->pages : 0, drains);
}

int pool::report(verdict what, const void* block, const request* expected) const noexcept {
    switch (what) {
    case verdict::foreign:
        return misuse(misuse_is_error_, "pointer %p is not of this pool", block);
    case verdict::not_a_start:
        return misuse(misuse_is_error_, "pointer %p lies inside a block, not at its start", block);
    case verdict::not_live:
        return misuse(misuse_is_error_,
                      "block %p is not live: it was freed before, or never handed out", block);
    case verdict::wrong_size:
        return misuse(misuse_is_error_, "block %p is not one of %zu bytes", block,
                      expected != nullptr ? expected->bytes : 0);
    case verdict::done:
        break;
    }
    return 0;
}

} // namespace hcamem::core
