// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "pool/slab_table.h"

#include <algorithm>

namespace hcamem::core {

int slab_table::init(std::size_t units) noexcept {
    const int result = table_.make_table(units * sizeof(entry));
    if (result == 0) {
        entries_ = table_.as<entry>();
        units_ = units;
        end_ = 0;
        count_ = 0;
        units_used_ = 0;
    }
    return result;
}

void slab_table::reset() noexcept {
    table_.reset();
    entries_ = nullptr;
    units_ = end_ = count_ = units_used_ = 0;
}

std::size_t slab_table::find_free(std::size_t units) const noexcept {
    std::size_t begin = 0;
    for (std::size_t unit = 0; unit < end_;) {
        if (unit - begin >= units) {
            break;
        }
        const std::size_t used = entries_[unit].units;
        unit += used != 0 ? used : 1;
        if (used != 0) {
            begin = unit;
        }
    }
    return units_ - begin >= units ? begin : SIZE_MAX;
}

void slab_table::add(std::size_t unit, std::size_t units, slab_state state) noexcept {
    entries_[unit] = {static_cast<std::uint32_t>(units), state};
    end_ = std::max(end_, unit + units);
    if (state != slab_state::lost) {
        ++count_;
    }
    units_used_ += units;
}

void slab_table::set_state(std::size_t unit, slab_state state) noexcept {
    if (state == slab_state::lost) {
        --count_;
    }
    entries_[unit].state = state;
}

void slab_table::remove(std::size_t unit) noexcept {
    units_used_ -= entries_[unit].units;
    --count_;
    entries_[unit] = {};
}

slab slab_table::next(std::size_t unit) const noexcept {
    for (; unit < end_; ++unit) {
        if (entries_[unit].units != 0) {
            return {static_cast<std::uint32_t>(unit), entries_[unit].units, entries_[unit].state};
        }
    }
    return {};
}

} // namespace hcamem::core
