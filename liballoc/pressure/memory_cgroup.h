// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The limits that this process's memory cgroup and those above it set (cgroup v2).
// memory.events tells when usage meets a limit: anybody may poll it, while a trigger
// on memory.pressure needs the right to write there and a kernel that keeps PSI.
#ifndef HCAMEM_PRESSURE_MEMORY_CGROUP_H
#define HCAMEM_PRESSURE_MEMORY_CGROUP_H

#include <cstdint>
#include <string>
#include <vector>

#include <hcamem.h>

#include "os/file.h"

namespace hcamem::core {

/// One level of the hierarchy.
class memory_cgroup {
  public:
    /// The levels that apply to this process, its own first; those without limits of their
    /// own too, since they may get some. Empty without cgroup v2. May throw bad_alloc.
    static std::vector<memory_cgroup> of_this_process();

    /// The levels of `path` ("" or "/a/b") below the folder `root`.
    static std::vector<memory_cgroup> levels_of(const std::string& root, std::string path);

    /// memory.events; ready for EPOLLPRI after a limit was met, until look().
    [[nodiscard]] int descriptor() const noexcept { return events_.descriptor(); }

    /// What the limit wants, if it was met since the last look and more than page cache is
    /// in its way; level HCAMEM_PRESSURE_NONE otherwise.
    hcamem_pressure look() noexcept;

  private:
    memory_cgroup(std::string folder, file events);

    struct counts {
        std::uint64_t met;    // memory.high or memory.max was met
        std::uint64_t killed; // by the OOM killer, or nearly
    };
    [[nodiscard]] counts read_counts() const noexcept;
    [[nodiscard]] std::uint64_t limit() const noexcept;
    [[nodiscard]] std::uint64_t used() const noexcept;

    std::string folder_;
    file events_;
    counts seen_;
};

} // namespace hcamem::core

#endif
