// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "heap/block_states.h"

namespace hcamem::core {

int block_states::init(const std::byte* base, std::size_t bytes) noexcept {
    const std::size_t pages = bytes / page_bytes;
    const std::size_t small = page_bytes >> small_step;
    const int result = table_.make_table(pages * (sizeof(page_info) + small));
    if (result != 0) {
        return result;
    }
    infos_ = table_.as<page_info>();
    small_ = reinterpret_cast<block_state*>(infos_ + pages);
    base_ = base;
    bytes_ = bytes;
    return 0;
}

void block_states::reset() noexcept {
    base_ = nullptr;
    bytes_ = 0;
    infos_ = nullptr;
    small_ = nullptr;
    table_.reset();
}

void block_states::describe(std::size_t first, std::size_t pages,
                            std::size_t class_index) noexcept {
    const bool small = size_classes[class_index].bytes < (1U << large_step);
    const unsigned step = small ? small_step : large_step;
    for (std::size_t page = first; page < first + pages; ++page) {
        page_info& info = infos_[page];
        const block_state* const states =
            small ? small_ + page * (page_bytes >> small_step) : info.states.data();
        const auto address = reinterpret_cast<std::uintptr_t>(base_ + page * page_bytes);
        info.where.store(reinterpret_cast<std::uintptr_t>(states) - (address >> step),
                         std::memory_order_relaxed);
        info.class_index.store(static_cast<std::uint32_t>(class_index), std::memory_order_relaxed);
        info.step.store(step, std::memory_order_relaxed);
    }
}

void block_states::forget(std::size_t first, std::size_t pages) noexcept {
    for (std::size_t page = first; page < first + pages; ++page) {
        // Where it led to stays readable, for who asks about a block that is not live.
        infos_[page].step.store(0, std::memory_order_relaxed);
    }
}

} // namespace hcamem::core
