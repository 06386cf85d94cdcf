// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Which parts of the reserved range are slabs. Guarded by the pool's growth lock.
#ifndef HCAMEM_POOL_SLAB_TABLE_H
#define HCAMEM_POOL_SLAB_TABLE_H

#include <cstddef>
#include <cstdint>

#include "heap/size_class.h"
#include "os/mapping.h"

namespace hcamem::core {

enum class slab_state : std::uint32_t {
    none,
    active,  // its pages are in the page heap
    retired, // out of use, but a registration or the mapping could not be undone yet
    lost,    // the address range was taken by another mapping of the process
};

struct slab {
    std::uint32_t unit = 0; // of its start, in slab_unit
    std::uint32_t units = 0;
    slab_state state = slab_state::none;

    [[nodiscard]] std::size_t bytes() const noexcept { return units * slab_unit; }
};

class slab_table {
  public:
    /// For a range of so many units. -ENOMEM with a message.
    int init(std::size_t units) noexcept;
    void reset() noexcept;

    /// First of `units` neighbouring free units; SIZE_MAX: there are not so many.
    [[nodiscard]] std::size_t find_free(std::size_t units) const noexcept;

    void add(std::size_t unit, std::size_t units, slab_state state) noexcept;
    void set_state(std::size_t unit, slab_state state) noexcept;
    void remove(std::size_t unit) noexcept;

    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return units_used_ * slab_unit; }

    /// The first slab that begins at `unit` or behind it; state none: there is no more.
    [[nodiscard]] slab next(std::size_t unit) const noexcept;

  private:
    struct entry {
        std::uint32_t units; // of the slab that begins here; 0: none does
        slab_state state;
    };

    mapping table_;
    entry* entries_ = nullptr;
    std::size_t units_ = 0;
    std::size_t end_ = 0; // no slab begins or lies behind
    std::size_t count_ = 0;
    std::size_t units_used_ = 0;
};

} // namespace hcamem::core

#endif
