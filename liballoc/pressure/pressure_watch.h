// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Who wants memory back: the module, by events of its node, and the memory cgroups
// that this process is in. One descriptor to poll for all of them.
#ifndef HCAMEM_PRESSURE_PRESSURE_WATCH_H
#define HCAMEM_PRESSURE_PRESSURE_WATCH_H

#include <vector>

#include <hcamem.h>

#include "os/file.h"
#include "pressure/memory_cgroup.h"

namespace hcamem::core {

/// Not for use by several threads at once.
class pressure_watch {
  public:
    /// `node`: a node that reads without waiting, or no file. 0, or -errno with a message;
    /// -EOPNOTSUPP without anything to watch. May throw bad_alloc.
    int open(file node);

    /// Readable when next() may have something. For poll() only.
    [[nodiscard]] int descriptor() const noexcept { return poll_.descriptor(); }

    /// Takes one; false if there is none.
    bool next(hcamem_pressure& taken) noexcept;

  private:
    [[nodiscard]] int add(int descriptor, std::uint32_t events) const noexcept;
    bool next_of_node(hcamem_pressure& taken) noexcept;

    file poll_;
    file node_; // until the HCA is gone
    std::vector<memory_cgroup> cgroups_;
};

} // namespace hcamem::core

#endif
