// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Changing mappings: munmap, mprotect, madvise, mlock.
#include <sys/mman.h>

#include <cerrno>
#include <memory>

#include "operations.hpp"

namespace fuzz {

namespace {

// What madvise() knows on one of the kernels, by number: older headers lack the newer names.
constexpr int advice_collapse = 25;
constexpr int advice_hwpoison = 100;
constexpr int advice_soft_offline = 101;
// 102 and 103 are the guard pages of newer kernels, after which nothing can be read.
constexpr int first_free_advice = 104;

int some_advice(Random& random) {
    switch (random.below(12)) {
    case 0:
        return random.one_of({advice_hwpoison, advice_soft_offline});
    case 1:
        return static_cast<int>(random.between(first_free_advice, 1 << 20)) *
               random.one_of({1, -1});
    case 2:
    case 3:
    case 4:
        return random.one_of({MADV_DOFORK, MADV_DONTFORK, MADV_KEEPONFORK, MADV_WIPEONFORK});
    case 5:
    case 6:
        return random.one_of({MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_PAGEOUT, MADV_COLD});
    default:
        return static_cast<int>(random.below(advice_collapse + 1));
    }
}

/// What a piece of advice that the kernel took means for the model.
void take_advice(Area& area, int advice) {
    Memory& memory = *area.memory;
    switch (advice) {
    case MADV_DONTFORK:
        area.dontfork = true;
        break;
    case MADV_DOFORK:
        area.dontfork = false;
        break;
    case MADV_WIPEONFORK:
        area.wiped = true;
        break;
    case MADV_KEEPONFORK:
        area.wiped = false;
        break;
    case MADV_DONTNEED:
    case MADV_DONTNEED_LOCKED:
        if (!memory.device()) {
            memory.set_versions(area.first, area.pages, zeros);
        }
        break;
    case MADV_FREE:
        if (!memory.device()) {
            memory.set_versions(area.first, area.pages, unknown);
        }
        break;
    default:
        break;
    }
}

/// Of advice that changes content, a failure may have changed some of it.
void doubt_content(Area& area, int advice) {
    const bool changes =
        advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED || advice == MADV_FREE;
    if (changes && !area.memory->device()) {
        area.memory->set_versions(area.first, area.pages, unknown);
    }
}

bool changes_fork(int advice) {
    return advice == MADV_DONTFORK || advice == MADV_DOFORK || advice == MADV_WIPEONFORK ||
           advice == MADV_KEEPONFORK;
}

} // namespace

Outcome unmap_range(Process& process, Random& random) {
    if (process.areas.empty()) {
        return Outcome::idle;
    }
    const Area area = process.areas.pick(random);
    if (random.one_in(8)) {
        process.note("munmap badly", {area.start});
        if (munmap(pointer(area.start + 1), page_bytes) == 0 ||
            munmap(pointer(area.start), 0) == 0) {
            process.wrong("munmap() of an odd range worked");
        }
    }
    return process.unmap(some_of(area, random)) ? Outcome::done : Outcome::refused;
}

Outcome protect_range(Process& process, Random& random) {
    if (process.areas.empty()) {
        return Outcome::idle;
    }
    const Area area = process.areas.pick(random);
    const Range range = some_of(area, random);
    const int prot = random.one_of({PROT_NONE, PROT_READ, PROT_WRITE, PROT_READ | PROT_WRITE,
                                    PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE,
                                    PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC});
    process.note("mprotect", {range.start, range.pages, static_cast<std::uint64_t>(prot)});
    if (mprotect(pointer(range.start), range.bytes(), prot) == 0) {
        if ((prot & PROT_EXEC) != 0) {
            process.wrong(text("memory of the driver at ", hex(range.start), " is executable"));
        }
        process.areas.change(range, [prot](Area& part) { part.prot = prot; });
        return Outcome::done;
    }
    const int error = errno;
    if ((prot & PROT_EXEC) != 0) {
        process.allow("mprotect to executable", error, {EACCES, ENOMEM});
    } else {
        process.allow("mprotect", error, {ENOMEM});
    }
    if (error == ENOMEM) {
        process.drop(range); // some of it may have been changed
    }
    return Outcome::refused;
}

Outcome advise_range(Process& process, Random& random) {
    if (process.areas.empty()) {
        return Outcome::idle;
    }
    const Area area = process.areas.pick(random);
    const Range range = some_of(area, random);
    const int advice = some_advice(random);
    process.note("madvise", {range.start, range.pages, static_cast<std::uint64_t>(advice)});
    if (madvise(pointer(range.start), range.bytes(), advice) == 0) {
        if (advice < 0 || advice >= advice_hwpoison) {
            process.wrong(text("madvise() took advice ", advice));
        }
        if (advice == MADV_WIPEONFORK && area.memory->device()) {
            process.wrong("madvise(WIPEONFORK) of a shared mapping worked");
        }
        process.areas.change(range, [advice](Area& part) { take_advice(part, advice); });
        return Outcome::done;
    }
    const int error = errno;
    process.allow("madvise", error,
                  {EINVAL, ENOMEM, EACCES, EPERM, EAGAIN, EBADF, EFAULT, EBUSY, EIO, EOPNOTSUPP,
                   ENODEV, EHWPOISON});
    process.areas.change(range, [advice](Area& part) { doubt_content(part, advice); });
    if (changes_fork(advice) && error == ENOMEM) {
        process.drop(range);
    }
    return Outcome::refused;
}

Outcome lock_range(Process& process, Random& random) {
    if (process.areas.empty()) {
        return Outcome::idle;
    }
    const Range range = some_of(process.areas.pick(random), random);
    const int way = static_cast<int>(random.below(4));
    process.note("mlock", {range.start, range.pages, static_cast<std::uint64_t>(way)});
    const int result = way == 0   ? mlock(pointer(range.start), range.bytes())
                       : way == 1 ? mlock2(pointer(range.start), range.bytes(), MLOCK_ONFAULT)
                                  : munlock(pointer(range.start), range.bytes());
    if (result != 0) {
        process.allow("mlock", errno, {ENOMEM, EAGAIN, EPERM});
        return Outcome::refused;
    }
    return Outcome::done;
}

Outcome lock_everything(Process& process, Random& random) {
    process.note("mlockall", {});
    // What is mapped meanwhile is locked as well, as far as that means anything for it.
    const int flags = random.one_of({MCL_FUTURE, MCL_FUTURE | MCL_ONFAULT, MCL_CURRENT});
    if (mlockall(flags) != 0) {
        process.allow("mlockall", errno, {ENOMEM, EAGAIN, EPERM});
    }
    const Outcome outcome = map_bare(process, random);
    if (munlockall() != 0) {
        process.allow("munlockall", errno, {ENOMEM, EAGAIN});
    }
    return outcome;
}

} // namespace fuzz
