// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <algorithm>
#include <array>
#include <cerrno>

#include "error/message.h"
#include "pool/pool.h"

namespace hcamem::core {

std::size_t pool::usable(const void* block) noexcept {
    if (!pages_.in_range(block)) {
        return 0;
    }
    span_head head;
    const std::uint32_t first = pages_.first_page(pages_.offset_of(block) / page_bytes, head);
    if (first == no_page) {
        return 0;
    }
    if (head.kind == span_kind::large) {
        return block == pages_.page_address(first) ? head.pages * page_bytes : 0;
    }
    return states_.is_live(block) ? size_classes[head.class_index].bytes : 0;
}

bool pool::owns(const void* address) const noexcept {
    return pages_.in_range(address) && pages_.slab_of(address) != no_page;
}

void pool::stats(hcamem_stats& now) noexcept {
    now = {};
    now.size = sizeof now;
    now.source = source_kind_;
    now.maximum = options_.maximum;
    std::array<std::size_t, class_count> cached{};
    count_cached(cached);
    for (std::size_t index = 0; index < class_count; ++index) {
        const std::uint64_t taken = arenas_.live(index);
        const std::uint64_t live = taken - std::min<std::uint64_t>(taken, cached[index]);
        now.live_blocks += live;
        now.live_bytes += live * size_classes[index].bytes;
    }
    const page_heap::usage large = pages_.large_usage();
    now.live_blocks += large.blocks;
    now.live_bytes += large.bytes;
    const std::lock_guard guard(growth_);
    now.mapping = source_ != nullptr ? source_->mapping() : options_.mapping;
    now.slabs = static_cast<std::uint32_t>(slabs_.count());
    now.slab_bytes = slabs_.bytes();
    for (const binding* each = bindings_; each != nullptr; each = each->next) {
        ++now.bindings;
        now.mrs += static_cast<std::uint32_t>(each->mrs());
    }
}

bool pool::in_one_slab(const void* address, std::size_t bytes) const noexcept {
    const auto* last = static_cast<const std::byte*>(address) + (bytes - 1);
    return bytes != 0 && last >= address && owns(address) && owns(last) &&
           pages_.slab_of(address) == pages_.slab_of(last);
}

int pool::export_dmabuf(const void* address, std::size_t bytes, std::uint64_t& offset) noexcept {
    if (!in_one_slab(address, bytes)) {
        return fail(EINVAL, "export of %zu bytes at %p: not a range in one slab of the pool", bytes,
                    address);
    }
    return source_->export_dmabuf(address, bytes, offset);
}

} // namespace hcamem::core
