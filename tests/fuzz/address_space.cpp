// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "address_space.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "support/failure.hpp"

namespace fuzz {

namespace {

constexpr std::size_t huge_bytes = std::size_t{2} << 20;
constexpr std::size_t arena_bytes = std::size_t{512} << 20;

void* at(std::uintptr_t address) {
    return reinterpret_cast<void*>(address);
}

} // namespace

void AddressSpace::add(const Area& area) {
    remove({area.start, area.pages});
    areas_.emplace(area.start, area);
}

void AddressSpace::split(std::uintptr_t at) {
    const auto after = areas_.upper_bound(at);
    if (after == areas_.begin()) {
        return;
    }
    Area& left = std::prev(after)->second;
    if (left.start == at || left.end() <= at) {
        return;
    }
    Area right = left;
    left.pages = (at - left.start) / page_bytes;
    right.start = at;
    right.first += left.pages;
    right.pages -= left.pages;
    areas_.emplace(at, right);
}

void AddressSpace::remove(Range range) {
    split(range.start);
    split(range.end());
    areas_.erase(areas_.lower_bound(range.start), areas_.lower_bound(range.end()));
}

void AddressSpace::change(Range range, const std::function<void(Area&)>& change) {
    split(range.start);
    split(range.end());
    const auto end = areas_.lower_bound(range.end());
    for (auto at = areas_.lower_bound(range.start); at != end; ++at) {
        change(at->second);
    }
}

void AddressSpace::for_each(const std::function<void(const Area&)>& visit) const {
    for (const auto& [start, area] : areas_) {
        visit(area);
    }
}

Area AddressSpace::pick(Random& random) const {
    const std::uint64_t number = random.below(areas_.size());
    return std::next(areas_.begin(), static_cast<std::ptrdiff_t>(number))->second;
}

Range some_of(const Area& area, Random& random) {
    switch (random.below(4)) {
    case 0:
        return {area.start, area.pages};
    case 1:
        return {area.start, random.between(1, area.pages)};
    case 2: {
        const std::size_t pages = random.between(1, area.pages);
        return {area.end() - pages * page_bytes, pages};
    }
    default: {
        const std::size_t skipped = random.below(area.pages);
        return {area.start + skipped * page_bytes, random.between(1, area.pages - skipped)};
    }
    }
}

Arena::Arena() {
    void* start = mmap(nullptr, arena_bytes + huge_bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) {
        support::fail("address space for the arena");
    }
    start_ = (reinterpret_cast<std::uintptr_t>(start) + huge_bytes - 1) & ~(huge_bytes - 1);
}

bool Arena::holds(Range range) const {
    return range.start >= start_ && range.end() <= start_ + arena_bytes;
}

void Arena::reserve(Range range) const {
    const std::uintptr_t start = std::max(range.start, start_);
    const std::uintptr_t end = std::min(range.end(), start_ + arena_bytes);
    if (start >= end) {
        return;
    }
    if (mmap(at(start), end - start, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
        support::fail("reserve part of the arena");
    }
}

std::uintptr_t Arena::somewhere(std::size_t pages, Random& random) const {
    const std::size_t room = arena_bytes / page_bytes - pages;
    std::size_t page = random.below(room + 1);
    if (random.one_in(2)) {
        page -= page % (huge_bytes / page_bytes);
    }
    return start_ + page * page_bytes;
}

} // namespace fuzz
