// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "heap/page_heap.h"

#include <bit>

#include "heap/annotate.h"

namespace hcamem::core {
namespace {

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) noexcept {
    return (value + multiple - 1) / multiple * multiple;
}

} // namespace

int page_heap::init(std::byte* base, std::size_t bytes, block_states& states) noexcept {
    const std::size_t pages = bytes / page_bytes;
    int result = span_table_.make_table(pages * sizeof(span));
    if (result == 0) {
        result = first_table_.make_table(pages * sizeof(*first_));
    }
    if (result == 0) {
        result = slab_table_.make_table(bytes / slab_unit * sizeof(*slab_));
    }
    if (result != 0) {
        reset();
        return result;
    }
    const std::lock_guard guard(lock_);
    base_ = base;
    bytes_ = bytes;
    states_ = &states;
    spans_ = span_table_.as<span>();
    first_ = first_table_.as<std::atomic<std::uint32_t>>();
    slab_ = slab_table_.as<std::atomic<std::uint32_t>>();
    bins_.fill(no_page);
    nonempty_.fill(0);
    large_ = {};
    draining_ = false;
    return 0;
}

void page_heap::reset() noexcept {
    const std::lock_guard guard(lock_);
    draining_ = true;
    nonempty_.fill(0); // an allocation that comes late finds no room
    base_ = nullptr;
    bytes_ = 0;
    spans_ = nullptr;
    first_ = nullptr;
    slab_ = nullptr;
    span_table_.reset();
    first_table_.reset();
    slab_table_.reset();
}

void page_heap::add_slab(std::size_t unit, std::size_t units) noexcept {
    const std::lock_guard guard(lock_);
    for (std::size_t each = unit; each < unit + units; ++each) {
        slab_[each].store(static_cast<std::uint32_t>(unit + 1), std::memory_order_relaxed);
    }
    annotate_free(base_ + unit * slab_unit, units * slab_unit);
    insert_free(static_cast<std::uint32_t>(unit * pages_per_unit),
                static_cast<std::uint32_t>(units * pages_per_unit));
}

bool page_heap::is_idle(std::size_t unit, std::size_t units) noexcept {
    const std::lock_guard guard(lock_);
    const span_head head = spans_[unit * pages_per_unit].head.load(std::memory_order_relaxed);
    return head.kind == span_kind::free && head.pages == units * pages_per_unit;
}

bool page_heap::remove_idle_slab(std::size_t unit, std::size_t units) noexcept {
    const std::lock_guard guard(lock_);
    const auto first = static_cast<std::uint32_t>(unit * pages_per_unit);
    const span_head head = spans_[first].head.load(std::memory_order_relaxed);
    if (head.kind != span_kind::free || head.pages != units * pages_per_unit) {
        return false;
    }
    remove_free(first);
    spans_[first].head.store({}, std::memory_order_relaxed);
    for (std::size_t each = unit; each < unit + units; ++each) {
        slab_[each].store(0, std::memory_order_relaxed);
    }
    return true;
}

std::size_t page_heap::take_blocks(std::size_t class_index, std::size_t arena,
                                   std::uint32_t* firsts, std::size_t n) noexcept {
    const std::lock_guard guard(lock_);
    std::size_t got = 0;
    for (; got < n; ++got) {
        firsts[got] = take(size_classes[class_index].span_pages, 1);
        if (firsts[got] == no_page) {
            break;
        }
        cut(firsts[got], class_index, arena);
    }
    return got;
}

void page_heap::cut(std::uint32_t first, std::size_t class_index, std::size_t arena) noexcept {
    const size_class& blocks = size_classes[class_index];
    for (std::uint32_t page = first; page < first + blocks.span_pages; ++page) {
        set_first(page, first);
    }
    span& made = spans_[first];
    made.free_bits.fill(0);
    for (std::size_t block = 0; block < blocks.capacity; ++block) {
        made.free_bits[block / 64] |= std::uint64_t{1} << (block % 64);
    }
    made.free_blocks = blocks.capacity;
    made.next = no_page;
    made.previous = no_page;
    states_->describe(first, blocks.span_pages, class_index);
    made.head.store({.kind = span_kind::blocks,
                     .class_index = static_cast<std::uint8_t>(class_index),
                     .arena = static_cast<std::uint16_t>(arena),
                     .pages = blocks.span_pages},
                    std::memory_order_release);
}

void page_heap::set_arena(std::uint32_t first, std::size_t arena) noexcept {
    span_head head = spans_[first].head.load(std::memory_order_relaxed);
    head.arena = static_cast<std::uint16_t>(arena);
    spans_[first].head.store(head, std::memory_order_release);
}

void page_heap::put_blocks(std::uint32_t first) noexcept {
    const std::lock_guard guard(lock_);
    while (first != no_page) {
        const std::uint32_t next = spans_[first].next;
        const std::uint32_t pages = spans_[first].head.load(std::memory_order_relaxed).pages;
        states_->forget(first, pages);
        put(first, pages);
        first = next;
    }
}

page_heap::result page_heap::take_large(std::size_t pages, std::size_t align,
                                        std::uint32_t& first) noexcept {
    const std::lock_guard guard(lock_);
    if (draining_) {
        return result::draining;
    }
    first = take(pages, align / page_bytes);
    if (first == no_page) {
        return result::no_room;
    }
    const auto count = static_cast<std::uint32_t>(pages);
    set_first(first, first);
    set_first(first + count - 1, first); // for the neighbour that merges to the left
    spans_[first].head.store({.kind = span_kind::large, .pages = count}, std::memory_order_release);
    ++large_.blocks;
    large_.bytes += pages * page_bytes;
    return result::done;
}

verdict page_heap::put_large(std::uint32_t first, std::size_t pages, bool& drains) noexcept {
    const std::lock_guard guard(lock_);
    const span_head head =
        spans_ == nullptr ? span_head{} : spans_[first].head.load(std::memory_order_relaxed);
    if (head.kind != span_kind::large) {
        return verdict::not_live;
    }
    if (pages != 0 && head.pages != pages) {
        return verdict::wrong_size;
    }
    annotate_free(page_address(first), head.pages * page_bytes);
    --large_.blocks;
    large_.bytes -= head.pages * page_bytes;
    put(first, head.pages);
    drains = draining_;
    return verdict::done;
}

bool page_heap::has_room(std::size_t pages, std::size_t align) noexcept {
    const std::lock_guard guard(lock_);
    std::uint32_t start = no_page;
    return find(pages, align / page_bytes, start) != no_page;
}

std::uint64_t page_heap::drain() noexcept {
    const std::lock_guard guard(lock_);
    draining_ = true;
    return large_.blocks;
}

page_heap::usage page_heap::large_usage() noexcept {
    const std::lock_guard guard(lock_);
    return large_;
}

std::uint32_t page_heap::first_page(std::size_t page, span_head& head) const noexcept {
    const std::uint32_t first = get_first(page);
    if (first == no_page) {
        return no_page;
    }
    // A page inside a free span keeps what was said about it last: ask the span.
    head = spans_[first].head.load(std::memory_order_acquire);
    const bool used = head.kind == span_kind::blocks || head.kind == span_kind::large;
    return used && page - first < head.pages ? first : no_page;
}

std::size_t page_heap::bin_of(std::size_t pages) noexcept {
    if (pages <= exact_bins) {
        return pages - 1;
    }
    const std::size_t last = pages - 1;
    const auto width = static_cast<std::size_t>(std::bit_width(last)); // 7 for 65 ... 128
    return exact_bins + (width - 7) * 8 + ((last >> (width - 4)) - 8);
}

/// The smallest free span with room, the lowest of equals; sets where in it to begin.
std::uint32_t page_heap::find(std::size_t pages, std::size_t align_pages,
                              std::uint32_t& start) const noexcept {
    std::uint32_t best = no_page;
    std::uint32_t best_pages = UINT32_MAX;
    std::size_t bin = bin_of(pages);
    std::uint64_t word = nonempty_[bin / 64] & (~std::uint64_t{0} << (bin % 64));
    for (std::size_t index = bin / 64;;) {
        if (word == 0) {
            if (++index == nonempty_.size()) {
                return no_page;
            }
            word = nonempty_[index];
            continue;
        }
        bin = index * 64 + static_cast<std::size_t>(std::countr_zero(word));
        word &= word - 1;
        for (std::uint32_t first = bins_[bin]; first != no_page; first = spans_[first].next) {
            const std::uint32_t have = spans_[first].head.load(std::memory_order_relaxed).pages;
            const std::size_t begin = round_up(first, align_pages);
            if (begin + pages > std::size_t{first} + have || have > best_pages ||
                (have == best_pages && first > best)) {
                continue;
            }
            best = first;
            best_pages = have;
            start = static_cast<std::uint32_t>(begin);
            if (bin < exact_bins && align_pages == 1) {
                return best; // all in this bin are equal
            }
        }
        if (best != no_page) {
            return best;
        }
    }
}

/// A large span is put at an end of its slab, if it can be: what lies between it and the other
/// spans is then in one piece once they are free.
std::uint32_t page_heap::take(std::size_t pages, std::size_t align_pages) noexcept {
    std::uint32_t start = no_page;
    const std::uint32_t first = find(pages, align_pages, start);
    if (first == no_page) {
        return no_page;
    }
    const std::uint32_t have = spans_[first].head.load(std::memory_order_relaxed).pages;
    if (pages >= large_span && align_pages == 1 && begins_slab(first + have) &&
        !begins_slab(first)) {
        start = first + have - static_cast<std::uint32_t>(pages);
    }
    remove_free(first);
    spans_[first].head.store({}, std::memory_order_relaxed);
    const std::uint32_t end = start + static_cast<std::uint32_t>(pages);
    if (start != first) {
        insert_free(first, start - first);
    }
    if (end != first + have) {
        insert_free(end, first + have - end);
    }
    return start;
}

/// Whether the page is not of the slab that the one before it is of. True also for the end of
/// the range.
bool page_heap::begins_slab(std::uint32_t page) const noexcept {
    if (page % pages_per_unit != 0) {
        return false;
    }
    const std::size_t unit = page / pages_per_unit;
    return unit == 0 || unit == bytes_ / slab_unit ||
           slab_[unit].load(std::memory_order_relaxed) !=
               slab_[unit - 1].load(std::memory_order_relaxed);
}

void page_heap::put(std::uint32_t first, std::uint32_t pages) noexcept {
    spans_[first].head.store({}, std::memory_order_relaxed);
    if (!begins_slab(first)) {
        const std::uint32_t left = get_first(first - 1);
        const span_head head = spans_[left].head.load(std::memory_order_relaxed);
        if (head.kind == span_kind::free) {
            remove_free(left);
            spans_[left].head.store({}, std::memory_order_relaxed);
            first = left;
            pages += head.pages;
        }
    }
    const std::uint32_t right = first + pages;
    if (!begins_slab(right)) {
        const span_head head = spans_[right].head.load(std::memory_order_relaxed);
        if (head.kind == span_kind::free) {
            remove_free(right);
            spans_[right].head.store({}, std::memory_order_relaxed);
            pages += head.pages;
        }
    }
    insert_free(first, pages);
}

void page_heap::insert_free(std::uint32_t first, std::uint32_t pages) noexcept {
    set_first(first, first);
    set_first(first + pages - 1, first);
    const std::size_t bin = bin_of(pages);
    span& added = spans_[first];
    added.previous = no_page;
    added.next = bins_[bin];
    if (added.next != no_page) {
        spans_[added.next].previous = first;
    }
    bins_[bin] = first;
    nonempty_[bin / 64] |= std::uint64_t{1} << (bin % 64);
    added.head.store({.kind = span_kind::free, .pages = pages}, std::memory_order_relaxed);
}

void page_heap::remove_free(std::uint32_t first) noexcept {
    const span& removed = spans_[first];
    const std::size_t bin = bin_of(removed.head.load(std::memory_order_relaxed).pages);
    if (removed.previous != no_page) {
        spans_[removed.previous].next = removed.next;
    } else {
        bins_[bin] = removed.next;
        if (removed.next == no_page) {
            nonempty_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
        }
    }
    if (removed.next != no_page) {
        spans_[removed.next].previous = removed.previous;
    }
}

} // namespace hcamem::core
