// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The regions that are handed out, from debugfs (root only).
#ifndef HCAMEMCTL_REGIONS_HPP
#define HCAMEMCTL_REGIONS_HPP

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ctl {

/// What became of the process that obtained a region.
enum class creator_state {
    alive,
    dead,    ///< also if another process has its pid now
    unknown, ///< this program runs in a pid namespace of its own
};
const char* to_string(creator_state creator);

struct chunk_run {
    std::uint64_t bytes = 0; ///< of each
    std::uint64_t count = 0;
};

struct region_info {
    std::uint64_t id = 0;
    std::string node;
    uid_t uid = 0;             ///< who pays
    pid_t pid = 0;             ///< who obtained it
    std::string command;       ///< of the thread that did; any bytes
    std::uint64_t created = 0; ///< nanoseconds after boot
    std::uint64_t bytes = 0;
    std::uint64_t charged = 0; ///< of them, not yet given back
    std::string mapping;       ///< huge, pages
    std::string fork;          ///< zero, dontcopy, share
    std::uint64_t mappings = 0;
    std::uint64_t dma_bufs = 0;
    std::vector<chunk_run> chunks;

    /// What keeps its memory:
    ///   mapped     a mapping
    ///   exported   only dma-bufs
    ///   unmapped   the open file it was created through; nobody has mapped it
    ///   leftover   only foreign references (vmsplice, O_DIRECT in flight) on pages
    [[nodiscard]] const char* state() const;
    [[nodiscard]] std::uint64_t age_seconds() const;
    /// Looks at /proc. A process that got the same pid within a clock tick (10 ms)
    /// of the region's creation is taken for its creator.
    [[nodiscard]] creator_state creator() const;
};

/// By id. If they cannot be known, nothing, and why in missing.
std::optional<std::vector<region_info>> read_regions(std::vector<std::string>& missing);

} // namespace ctl

#endif
