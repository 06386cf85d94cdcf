// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "error/message.h"
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
    const verdict what = put(block, expected);
    return what == verdict::done ? 0 : report(what, block, expected);
}

verdict pool::put(void* block, const request* expected) noexcept {
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
        cached_block freed{block, nullptr};
        cache_offset where = 0;
        if (!states_.set_free(block, freed.state, where,
                              [](cache_offset /*any*/) { return true; })) {
            const std::size_t offset =
                pages_.offset_of(block) - pages_.offset_of(pages_.page_address(first));
            return offset % size_classes[head.class_index].bytes != 0 ? verdict::not_a_start
                                                                      : verdict::not_live;
        }
        const std::size_t class_index = class_at(where);
        if (checks_.any()) {
            checks_.take_back(block, size_classes[class_index].bytes);
        }
        annotate_free(block, size_classes[class_index].bytes);
        if (put_slowly(class_index, freed)) {
            finish_drain();
        }
        return verdict::done;
    }
    if (block != pages_.page_address(first)) {
        return verdict::not_a_start;
    }
    if (expected != nullptr && !expected->is_large()) {
        return verdict::wrong_size;
    }
    if (checks_.any() && (expected == nullptr || expected->pages == head.pages)) {
        checks_.take_back(block, head.pages * page_bytes);
    }
    bool drains = false;
    const verdict what = pages_.put_large(first, expected != nullptr ? expected->pages : 0, drains);
    if (what == verdict::done && is_last(1, drains)) {
        finish_drain();
    }
    return what;
}

void pool::spill_class(std::size_t class_index) noexcept {
    if (spill(class_index)) {
        finish_drain();
    }
}

bool pool::put_behind(std::size_t kind, const cached_block* blocks, std::size_t n) noexcept {
    const returned_blocks result = arenas_.put(kind, blocks, n);
    if (result.twice != nullptr) {
        report_twice(result.twice);
    }
    return is_last(result.counted, result.counted != 0);
}

void pool::report_twice(const void* block) noexcept {
    misuse(misuse_is_error_, "block %p was freed by two threads at once", block);
}

/// After blocks went back: whether the pool has drained.
bool pool::is_last(std::uint64_t blocks, bool drains) noexcept {
    if (!drains) {
        freed_.notify();
        return false;
    }
    return references_.fetch_sub(blocks, std::memory_order_acq_rel) == blocks;
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
