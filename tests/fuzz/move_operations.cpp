// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// mremap(): a mapping elsewhere, shorter, or longer.
#include <sys/mman.h>

#include <cerrno>
#include <memory>

#include "guarded.hpp"
#include "operations.hpp"

namespace fuzz {

namespace {

/// 0 with errno set if it fails.
std::uintptr_t move(Process& process, std::uintptr_t from, std::size_t old_bytes,
                    std::size_t new_bytes, int flags, std::uintptr_t to = 0) {
    process.note("mremap",
                 {from, old_bytes << 32 | new_bytes, static_cast<std::uint64_t>(flags), to});
    void* at = mremap(pointer(from), old_bytes, new_bytes, flags, pointer(to));
    return at == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(at);
}

/// The part of the area that a range of it is, as an area elsewhere.
Area moved(const Area& area, Range range, std::uintptr_t to) {
    Area part = area;
    part.first += (range.start - area.start) / page_bytes;
    part.pages = range.pages;
    part.start = to;
    return part;
}

bool overlap(Range a, Range b) {
    return a.start < b.end() && b.start < a.end();
}

/// Where a range of that many pages fits beside the one it comes from; 0 if this try found none.
std::uintptr_t destination(Process& process, Range range, Random& random) {
    const std::uintptr_t to = process.arena.somewhere(range.pages, random);
    return overlap(range, {to, range.pages}) ? 0 : to;
}

/// Anonymous memory may grow; what is new must be zeros, and is given back.
Outcome grow(Process& process, const Area& area, Random& random) {
    const std::size_t more = random.between(1, 64);
    const std::size_t bytes = area.bytes() + more * page_bytes;
    const std::uintptr_t at = move(process, area.start, area.bytes(), bytes, MREMAP_MAYMOVE);
    if (at == 0) {
        process.allow("mremap to grow", errno, {EFAULT, ENOMEM, EAGAIN, EINVAL});
        return Outcome::refused;
    }
    if (area.memory->device()) {
        process.wrong(text("a mapping of the driver at ", hex(area.start), " grew"));
    }
    if (at != area.start) {
        process.areas.remove({area.start, area.pages});
        process.arena.reserve({area.start, area.pages});
        process.areas.add(moved(area, {area.start, area.pages}, at));
    }
    if (area.prot != PROT_NONE) {
        for (std::size_t page = 0; page < more; ++page) {
            const std::uintptr_t address = at + area.bytes() + page * page_bytes;
            if (load(address) != 0U) {
                process.wrong(text("memory that was added at ", hex(address), " is not zeros"));
            }
        }
    }
    process.drop({at + area.bytes(), more});
    return Outcome::done;
}

/// A second look at the same pages, or at zeros where the pages were.
Outcome leave_behind(Process& process, const Area& area, Random& random) {
    const Range range{area.start, area.pages};
    const std::uintptr_t to = destination(process, range, random);
    if (to == 0) {
        return Outcome::idle;
    }
    const std::uintptr_t at = move(process, area.start, area.bytes(), area.bytes(),
                                   MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);
    const int error = errno;
    process.areas.remove({to, area.pages});
    if (at == 0) {
        process.arena.reserve({to, area.pages});
        process.allow("mremap with DONTUNMAP", error, {EINVAL, ENOMEM, EFAULT, EAGAIN});
        return Outcome::refused;
    }
    if (area.memory->device()) {
        process.wrong(text("a mapping of the driver at ", hex(area.start), " was duplicated"));
    }
    process.areas.add(moved(area, range, to));
    Area old = area;
    old.memory = std::make_shared<Memory>(process.fresh_key(), area.pages, Memory::Kind::anonymous,
                                          HCAMEM_FORK_POLICY_ZERO);
    old.first = 0;
    process.areas.add(old);
    return Outcome::done;
}

} // namespace

Outcome move_range(Process& process, Random& random) {
    if (process.areas.empty()) {
        return Outcome::idle;
    }
    const Area area = process.areas.pick(random);
    const Range range = some_of(area, random);
    const std::uintptr_t to = destination(process, range, random);
    if (to == 0) {
        return Outcome::idle;
    }
    const std::uintptr_t at =
        move(process, range.start, range.bytes(), range.bytes(), MREMAP_MAYMOVE | MREMAP_FIXED, to);
    const int error = errno;
    process.areas.remove({to, range.pages});
    if (at == 0) {
        // What was at the destination is gone already. EFAULT: earlier advice left several
        // mappings where the model has one area.
        process.arena.reserve({to, range.pages});
        process.allow("mremap", error, {EFAULT, ENOMEM, EAGAIN, EINVAL});
        return Outcome::refused;
    }
    process.areas.remove(range);
    process.arena.reserve(range);
    process.areas.add(moved(area, range, to));
    return Outcome::done;
}

Outcome resize_range(Process& process, Random& random) {
    if (process.areas.empty()) {
        return Outcome::idle;
    }
    const Area area = process.areas.pick(random);
    if (random.one_in(3)) {
        return grow(process, area, random);
    }
    if (random.one_in(3)) {
        return leave_behind(process, area, random);
    }
    const std::size_t keep = random.between(1, area.pages);
    const std::uintptr_t at =
        move(process, area.start, area.bytes(), keep * page_bytes, MREMAP_MAYMOVE);
    if (at != area.start) {
        process.allow("mremap to shrink", at == 0 ? errno : EEXIST, {ENOMEM, EFAULT});
        process.drop({area.start, area.pages});
        return Outcome::refused;
    }
    const Range gone{area.start + keep * page_bytes, area.pages - keep};
    process.areas.remove(gone);
    process.arena.reserve(gone);
    return Outcome::done;
}

Outcome move_badly(Process& process, Random& random) {
    if (process.areas.empty()) {
        return Outcome::idle;
    }
    const Area area = process.areas.pick(random);
    std::uintptr_t at = 0;
    switch (random.below(4)) {
    case 0:
        at = move(process, area.start + 1, page_bytes, page_bytes, MREMAP_MAYMOVE);
        break;
    case 1:
        at = move(process, area.start, page_bytes, 0, MREMAP_MAYMOVE);
        break;
    case 2:
        // Onto itself
        at = move(process, area.start, area.bytes(), area.bytes(), MREMAP_MAYMOVE | MREMAP_FIXED,
                  area.start);
        break;
    default:
        // A length of 0 would be a second mapping of the same pages.
        at = move(process, area.start, 0, area.bytes(), MREMAP_MAYMOVE);
        break;
    }
    if (at != 0) {
        process.wrong("mremap() with bad arguments worked");
    }
    process.allow("mremap badly", errno, {EINVAL, EFAULT});
    return Outcome::done;
}

} // namespace fuzz
