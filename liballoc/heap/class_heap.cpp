// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "heap/class_heap.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace hcamem::core {

void class_heap::init(page_heap& pages, std::size_t arena, std::size_t class_index) noexcept {
    const std::lock_guard guard(lock_);
    pages_ = &pages;
    arena_ = static_cast<std::uint16_t>(arena);
    class_index_ = static_cast<std::uint16_t>(class_index);
    partial_ = no_page;
    idle_ = no_page;
    draining_ = false;
    live_ = 0;
}

std::size_t class_heap::take(cached_block* blocks, std::size_t n, const void*& twice) noexcept {
    const std::lock_guard guard(lock_);
    if (draining_) {
        return 0;
    }
    std::size_t got = 0;
    while (got < n) {
        if (partial_ == no_page && !add_spans(n - got)) {
            break;
        }
        void* const block = take_from(partial_);
        ++live_;
        blocks[got] = {block, pages_->state_of(block)};
        if (blocks[got].is_live()) [[unlikely]] {
            twice = block;
        } else {
            ++got;
        }
    }
    return got;
}

/// Spans with room for the blocks, as far as there are; false: none. Spans of a single block
/// are many, so the page heap's lock is taken once for several.
bool class_heap::add_spans(std::size_t blocks) noexcept {
    if (idle_ != no_page) {
        push(std::exchange(idle_, no_page));
        return true;
    }
    std::array<std::uint32_t, 16> fresh;
    const std::size_t wanted =
        std::clamp<std::size_t>(blocks / size_classes[class_index_].capacity, 1, fresh.size());
    const std::size_t got = pages_->take_blocks(class_index_, arena_, fresh.data(), wanted);
    std::for_each(fresh.rend() - static_cast<std::ptrdiff_t>(got), fresh.rend(),
                  [this](std::uint32_t first) { push(first); });
    return got != 0;
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

bool class_heap::take_over_span(class_heap& from) noexcept {
    const std::scoped_lock guard(lock_, from.lock_);
    if (draining_ || from.draining_) {
        return false;
    }
    const bool is_idle = from.idle_ != no_page;
    const std::uint32_t first = is_idle ? from.idle_ : from.partial_;
    if (first == no_page) {
        return false;
    }
    if (is_idle) {
        from.idle_ = no_page;
    } else {
        from.remove(first);
    }
    pages_->set_arena(first, arena_);
    push(first);
    return true;
}

std::size_t class_heap::put(const cached_block* blocks, std::size_t n,
                            returned_blocks& result) noexcept {
    const std::lock_guard guard(lock_);
    std::size_t back = 0;
    std::uint32_t emptied = no_page;
    std::size_t index = 0;
    for (; index < n; ++index) {
        const void* const block = blocks[index].block;
        span_head head;
        const std::uint32_t first = pages_->first_page(pages_->offset_of(block) / page_bytes, head);
        if (first == no_page || head.kind != span_kind::blocks ||
            head.class_index != class_index_) {
            result.twice = block;
            continue;
        }
        if (head.arena != arena_) {
            break;
        }
        if (!blocks[index].is_live() && put_into(first, block, emptied)) {
            ++back;
        } else {
            result.twice = block;
        }
    }
    if (emptied != no_page) {
        pages_->put_blocks(emptied);
    }
    live_ -= back;
    result.counted += draining_ ? back : 0;
    return index;
}

/// emptied: spans without live blocks, to be given back. They are linked by `next`.
bool class_heap::put_into(std::uint32_t first, const void* address,
                          std::uint32_t& emptied) noexcept {
    const size_class& blocks = size_classes[class_index_];
    const auto offset = static_cast<std::uint32_t>(pages_->offset_of(address) -
                                                   pages_->offset_of(pages_->page_address(first)));
    const std::uint32_t block = offset / blocks.bytes;
    if (offset % blocks.bytes != 0) {
        return false; // it was given back before, and the pages were cut anew
    }
    span& into = pages_->at(first);
    std::uint64_t& word = into.free_bits[block / 64];
    const std::uint64_t bit = std::uint64_t{1} << (block % 64);
    if ((word & bit) != 0) {
        return false;
    }
    word |= bit;
    if (++into.free_blocks == 1 && blocks.capacity != 1) {
        push(first);
    }
    if (into.free_blocks != blocks.capacity) {
        return true;
    }
    if (blocks.capacity != 1) {
        remove(first);
    }
    if (idle_ == no_page && blocks.capacity != 1) {
        idle_ = first; // the next call would take such a span at once
    } else {
        into.next = emptied;
        emptied = first;
    }
    return true;
}

void class_heap::release_idle() noexcept {
    const std::lock_guard guard(lock_);
    if (idle_ != no_page && !draining_) {
        pages_->at(idle_).next = no_page;
        pages_->put_blocks(idle_);
        idle_ = no_page;
    }
}

std::uint64_t class_heap::drain() noexcept {
    const std::lock_guard guard(lock_);
    draining_ = true;
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
