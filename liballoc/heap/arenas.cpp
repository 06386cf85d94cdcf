// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "heap/arenas.h"

namespace hcamem::core {

void arenas::init(page_heap& pages) noexcept {
    pages_ = &pages;
    for (std::size_t arena = 0; arena < arena_count; ++arena) {
        for (std::size_t index = 0; index < class_count; ++index) {
            heaps_[arena][index].init(pages, arena, index);
        }
    }
}

std::size_t arenas::take(std::size_t arena, std::size_t class_index, cached_block* blocks,
                         std::size_t n, const void*& twice) noexcept {
    class_heap& mine = heaps_[arena][class_index];
    std::size_t got = mine.take(blocks, n, twice);
    for (std::size_t step = 1; got == 0 && step < arena_count; ++step) {
        if (mine.take_over_span(heaps_[(arena + step) % arena_count][class_index])) {
            got = mine.take(blocks, n, twice);
        }
    }
    return got;
}

returned_blocks arenas::put(std::size_t class_index, const cached_block* blocks,
                            std::size_t n) noexcept {
    returned_blocks result;
    for (std::size_t done = 0; done < n;) {
        span_head head;
        const std::uint32_t first =
            pages_->first_page(pages_->offset_of(blocks[done].block) / page_bytes, head);
        class_heap& owner = heaps_[first != no_page ? head.arena : 0][class_index];
        done += owner.put(blocks + done, n - done, result);
    }
    return result;
}

void arenas::release_idle() noexcept {
    for (auto& arena : heaps_) {
        for (class_heap& each : arena) {
            each.release_idle();
        }
    }
}

std::uint64_t arenas::drain() noexcept {
    std::uint64_t live = 0;
    for (auto& arena : heaps_) {
        for (class_heap& each : arena) {
            live += each.drain();
        }
    }
    return live;
}

std::uint64_t arenas::live(std::size_t class_index) noexcept {
    // All at once: one after the other, a block could be missed where it was taken, and found
    // where it came back.
    std::array<class_heap::held, arena_count> held;
    std::uint64_t live = 0;
    for (std::size_t arena = 0; arena < arena_count; ++arena) {
        held[arena] = heaps_[arena][class_index].hold();
        live += heaps_[arena][class_index].live(held[arena]);
    }
    return live;
}

} // namespace hcamem::core
