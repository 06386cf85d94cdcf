// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The regions that are handed out, from debugfs (root only).
#ifndef HCAMEMCTL_REGIONS_HPP
#define HCAMEMCTL_REGIONS_HPP

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "missing.hpp"

namespace ctl {

struct chunk_run {
    std::uint64_t bytes = 0; ///< of each
    std::uint64_t count = 0;
};

struct region_info {
    std::uint64_t id = 0;
    std::string node;
    uid_t uid = 0;                        ///< who pays
    pid_t pid = 0;                        ///< who obtained it
    std::string command;                  ///< of the thread that did; any bytes
    std::optional<std::uint64_t> created; ///< nanoseconds after boot
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
    /// Nothing if the module does not tell.
    [[nodiscard]] std::optional<std::uint64_t> age_seconds() const;
};

/// A line of debugfs hcamem/regions; fields that are not known are passed over.
std::optional<region_info> parse_region(std::string_view line);

struct region_list {
    bool known = false;
    std::vector<region_info> list; ///< by id
};

/// Says in missing what keeps it from knowing.
region_list read_regions(missing_parts& missing);

} // namespace ctl

#endif
