// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A slab becomes visible to allocation only when it is mapped and every binding
// has registered it. Whatever fails on the way, all of it is undone.
#include <algorithm>
#include <atomic>
#include <cerrno>

#include "error/message.h"
#include "pool/pool.h"

namespace hcamem::core {
namespace {

// Where the size of slabs is not given: a share of what the pool has, so that the last one
// leaves little idle; up to a size at which a registration more or less is no matter.
constexpr std::size_t growth_share = 8;
constexpr std::size_t largest_growth = std::size_t{64} << 20;

constexpr std::size_t round_up(std::size_t bytes) noexcept {
    return (bytes + slab_unit - 1) / slab_unit * slab_unit;
}

/// Whether less memory may be had where this much was refused.
bool less_may_do(int error) noexcept {
    return error == -ENOMEM || error == -EAGAIN || error == -EDQUOT;
}

} // namespace

/// Adds a slab that holds `bytes` in one piece. The growth lock is held.
int pool::grow(std::size_t bytes) noexcept {
    const std::size_t least = round_up(bytes);
    const std::size_t left = options_.maximum - slabs_.bytes();
    if (least > left) {
        return fail(ENOMEM,
                    "the pool is at its maximum: %s of %s are used by slabs and %s more are wanted "
                    "(HCAMEM_MAXIMUM)",
                    size_text(slabs_.bytes()).c_str(), size_text(options_.maximum).c_str(),
                    size_text(least).c_str());
    }
    const std::size_t growth =
        options_.growth != 0
            ? options_.growth
            : std::clamp(round_up(slabs_.bytes() / growth_share), slab_unit, largest_growth);
    const std::size_t wanted = std::min(std::max(least, growth), left);
    std::size_t step = wanted;
    for (;;) {
        const int result = add_slab(step);
        if (result == 0) {
            if (step != wanted) {
                static std::atomic<bool> said;
                warn_once(said, "slabs smaller than %s are used: %s", size_text(wanted).c_str(),
                          last_message());
            }
            return 0;
        }
        if (step == least || !less_may_do(result)) {
            return result;
        }
        step = std::max(least, round_up(step / 2));
    }
}

int pool::add_slab(std::size_t bytes) noexcept {
    const std::size_t units = bytes / slab_unit;
    const std::size_t unit = slabs_.find_free(units);
    if (unit == SIZE_MAX) {
        return fail(ENOMEM, "no %s of the pool's address range lie free in one piece",
                    size_text(bytes).c_str());
    }
    const slab added{static_cast<std::uint32_t>(unit), static_cast<std::uint32_t>(units),
                     slab_state::active};
    int result = source_->map(address_of(added), bytes);
    if (result != 0) {
        if (!restore_reserved(address_of(added), bytes)) {
            slabs_.add(unit, units, slab_state::lost);
        }
        return result;
    }
    if ((options_.flags & HCAMEM_OPT_PREFAULT) != 0) {
        make_present(address_of(added), bytes);
    }
    checks_.add_memory(address_of(added), bytes);
    result = register_slab(added);
    if (result != 0) {
        // Undone as far as it goes; a part that stays is tried again by trim() and at the end.
        slabs_.add(unit, units, slab_state::retired);
        give_back_slab(added);
        return result;
    }
    slabs_.add(unit, units, slab_state::active);
    pages_.add_slab(unit, units);
    return 0;
}

/// With every binding, or with none.
int pool::register_slab(const slab& added) noexcept {
    for (binding* each = bindings_; each != nullptr; each = each->next) {
        const int result = each->add(added, *source_);
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

} // namespace hcamem::core
