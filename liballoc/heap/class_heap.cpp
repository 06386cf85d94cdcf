// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "heap/class_heap.h"

#include <bit>

#include "heap/annotate.h"

namespace hcamem::core {

void class_heap::init(page_heap& pages, std::size_t class_index) noexcept {
    const std::lock_guard guard(lock_);
    pages_ = &pages;
    class_index_ = static_cast<std::uint32_t>(class_index);
    partial_ = no_page;
    idle_ = no_page;
    draining_ = false;
    live_ = 0;
}

class_heap::taken class_heap::take(void** blocks, std::size_t n) noexcept {
    const std::lock_guard guard(lock_);
    if (draining_) {
        return {.blocks = 0, .draining = true};
    }
    std::size_t got = 0;
    while (got < n) {
        if (partial_ == no_page) {
            const std::uint32_t fresh =
                idle_ != no_page ? idle_ : pages_->take_blocks(class_index_);
            idle_ = no_page;
            if (fresh == no_page) {
                break;
            }
            push(fresh);
        }
        blocks[got++] = take_from(partial_);
    }
    live_ += got;
    return {.blocks = got, .draining = false};
}

void* class_heap::take_from(std::uint32_t first) noexcept {
    span& from = pages_->at(first);
    std::uint64_t* word = from.free_bits.data();
    while (*word == 0) {
        ++word; // a span in the list has a free block
    }
    const auto bit = static_cast<std::size_t>(std::countr_zero(*word));
    *word &= *word - 1;
    const std::size_t block = static_cast<std::size_t>(word - from.free_bits.data()) * 64 + bit;
    if (--from.free_blocks == 0) {
        remove(first);
    }
    return pages_->page_address(first) + block * size_classes[class_index_].bytes;
}

verdict class_heap::find(const void* address, std::uint32_t first,
                         std::size_t& block) const noexcept {
    // Between the caller's look and our lock the span may have been given back.
    const span_head head = draining_ && live_ == 0
                               ? span_head{}
                               : pages_->at(first).head.load(std::memory_order_relaxed);
    if (head.kind != span_kind::blocks || head.class_index != class_index_) {
        return verdict::not_live;
    }
    const size_class& blocks = size_classes[class_index_];
    const std::size_t offset =
        pages_->offset_of(address) - pages_->offset_of(pages_->page_address(first));
    block = offset / blocks.bytes;
    if (block >= blocks.capacity || offset % blocks.bytes != 0) {
        return verdict::not_a_start;
    }
    const bool free = (pages_->at(first).free_bits[block / 64] >> (block % 64) & 1) != 0;
    return free ? verdict::not_live : verdict::done;
}

verdict class_heap::put(const void* address, std::uint32_t first, bool& drains) noexcept {
    const std::lock_guard guard(lock_);
    std::size_t block = 0;
    const verdict found = find(address, first, block);
    if (found != verdict::done) {
        return found;
    }
    annotate_free(address, size_classes[class_index_].bytes);
    span& into = pages_->at(first);
    into.free_bits[block / 64] |= std::uint64_t{1} << (block % 64);
    --live_;
    drains = draining_;
    const std::uint32_t capacity = size_classes[class_index_].capacity;
    if (++into.free_blocks == 1 && capacity != 1) {
        push(first);
    }
    if (into.free_blocks != capacity) {
        return verdict::done;
    }
    if (capacity != 1) {
        remove(first);
    }
    if (idle_ == no_page && capacity != 1) {
        idle_ = first; // the next call would take such a span at once
    } else {
        pages_->put_blocks(first);
    }
    return verdict::done;
}

bool class_heap::is_live(const void* address, std::uint32_t first) noexcept {
    const std::lock_guard guard(lock_);
    std::size_t block = 0;
    return find(address, first, block) == verdict::done;
}

void class_heap::release_idle() noexcept {
    const std::lock_guard guard(lock_);
    if (idle_ != no_page && !draining_) {
        pages_->put_blocks(idle_);
        idle_ = no_page;
    }
}

std::uint64_t class_heap::drain() noexcept {
    const std::lock_guard guard(lock_);
    draining_ = true;
    return live_;
}

std::uint64_t class_heap::live() noexcept {
    const std::lock_guard guard(lock_);
    return live_;
}

void class_heap::push(std::uint32_t first) noexcept {
    span& added = pages_->at(first);
    added.previous = no_page;
    added.next = partial_;
    if (partial_ != no_page) {
        pages_->at(partial_).previous = first;
    }
    partial_ = first;
}

void class_heap::remove(std::uint32_t first) noexcept {
    const span& removed = pages_->at(first);
    if (removed.previous != no_page) {
        pages_->at(removed.previous).next = removed.next;
    } else {
        partial_ = removed.next;
    }
    if (removed.next != no_page) {
        pages_->at(removed.next).previous = removed.previous;
    }
}

} // namespace hcamem::core
