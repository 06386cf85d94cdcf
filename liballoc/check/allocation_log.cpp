// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "check/allocation_log.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <new>
#include <vector>

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/auxv.h>

#include "error/message.h"

namespace hcamem::core {

/// The first frame that is not this library's; 0 in a program that it is linked into.
std::size_t allocation_log::allocation::first_of_caller() const noexcept {
    static const int inside = 0;
    Dl_info library{};
    Dl_info program{};
    dladdr(&inside, &library);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel gives addresses as numbers
    dladdr(reinterpret_cast<const void*>(getauxval(AT_ENTRY)), &program);
    if (library.dli_fbase == program.dli_fbase) {
        return 0;
    }
    for (std::size_t index = 0; index < frames; ++index) {
        Dl_info info{};
        if (dladdr(stack[index], &info) == 0 || info.dli_fbase != library.dli_fbase) {
            return index;
        }
    }
    return 0;
}

void allocation_log::add(const void* block, std::size_t bytes) noexcept {
    allocation made;
    made.bytes = bytes;
    made.frames = static_cast<std::size_t>(
        std::max(backtrace(made.stack.data(), static_cast<int>(made.stack.size())), 0));
    // The ways inside the library differ, and are of no interest.
    const std::size_t own = made.first_of_caller();
    std::fill(std::copy(made.stack.begin() + own, made.stack.end(), made.stack.begin()),
              made.stack.end(), nullptr);
    made.frames -= own;
    try {
        const std::lock_guard guard(lock_);
        live_.insert_or_assign(block, made);
    } catch (const std::bad_alloc&) {
        static std::atomic<bool> said;
        warn_once(said, "no memory to log an allocation; the report of leaks will lack some");
    }
}

void allocation_log::remove(const void* block) noexcept {
    const std::lock_guard guard(lock_);
    live_.erase(block);
}

void allocation_log::print(const void* begin, const void* end) noexcept {
    try {
        const std::lock_guard guard(lock_);
        std::map<std::array<void*, most_frames>, place> places;
        for (const auto& [block, made] : live_) {
            if (std::less<>()(block, begin) || !std::less<>()(block, end)) {
                continue;
            }
            place& from = places[made.stack];
            from.first = &made;
            ++from.blocks;
            from.bytes += made.bytes;
        }
        std::vector<place> sorted;
        sorted.reserve(places.size());
        for (const auto& [stack, from] : places) {
            sorted.push_back(from);
        }
        std::sort(sorted.begin(), sorted.end(),
                  [](const place& a, const place& b) { return a.bytes > b.bytes; });
        for (const place& from : sorted) {
            print_place(from);
        }
    } catch (const std::bad_alloc&) {
        print_line("no memory to say where the live blocks were allocated");
    }
}

/// As MODULE(FUNCTION+OFFSET) [MODULE'S OFFSET], the latter for addr2line.
void allocation_log::print_place(const place& from) noexcept {
    print_line("  %zu blocks, %s, allocated at", from.blocks, size_text(from.bytes).c_str());
    for (std::size_t index = 0; index < from.first->frames; ++index) {
        void* const address = from.first->stack[index];
        Dl_info info{};
        if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
            print_line("    %p", address);
            continue;
        }
        const auto offset = reinterpret_cast<std::uintptr_t>(address) -
                            reinterpret_cast<std::uintptr_t>(info.dli_fbase);
        if (info.dli_sname != nullptr) {
            print_line("    %s(%s+0x%zx) [0x%zx]", info.dli_fname, info.dli_sname,
                       reinterpret_cast<std::uintptr_t>(address) -
                           reinterpret_cast<std::uintptr_t>(info.dli_saddr),
                       offset);
        } else {
            print_line("    %s [0x%zx]", info.dli_fname, offset);
        }
    }
}

} // namespace hcamem::core
