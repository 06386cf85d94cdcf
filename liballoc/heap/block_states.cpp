// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "heap/block_states.h"

namespace hcamem::core {

int block_states::init(const std::byte* base, std::size_t bytes) noexcept {
    const std::size_t pages = bytes / page_bytes;
    const int result = table_.make_table(pages * (sizeof(page_info) + units_per_page));
    if (result != 0) {
        return result;
    }
    infos_ = table_.as<page_info>();
    small_ = reinterpret_cast<block_state*>(infos_ + pages);
    base_ = base;
    infos_at_zero_ = reinterpret_cast<std::uintptr_t>(infos_) -
                     reinterpret_cast<std::uintptr_t>(base) / page_bytes * sizeof(page_info);
    units_ = bytes / min_align;
    return 0;
}

void block_states::reset() noexcept {
    base_ = nullptr;
    units_ = 0;
    infos_ = nullptr;
    small_ = nullptr;
    table_.reset();
}

void block_states::describe(std::size_t first, std::size_t pages,
                            std::size_t class_index) noexcept {
    const bool small = size_classes[class_index].bytes < large_unit;
    const unsigned shift = small ? 0 : large_shift;
    for (std::size_t page = first; page < first + pages; ++page) {
        page_info& info = infos_[page];
        const block_state* const states =
            small ? small_ + page * units_per_page : info.states.data();
        info.where.store(reinterpret_cast<std::uintptr_t>(states) -
                             ((page * units_per_page) >> shift),
                         std::memory_order_relaxed);
        info.cache.store(cache_offset_of(class_index), std::memory_order_relaxed);
        info.shift.store(static_cast<std::uint8_t>(is_cut | shift), std::memory_order_relaxed);
    }
}

void block_states::forget(std::size_t first, std::size_t pages) noexcept {
    for (std::size_t page = first; page < first + pages; ++page) {
        // Where it led to stays readable, for who asks about a block that is not live.
        infos_[page].shift.store(0, std::memory_order_relaxed);
    }
}

} // namespace hcamem::core
