// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Everything `show` knows, narrowed to what was asked for, with its sums.
#ifndef HCAMEMCTL_HOLDINGS_HPP
#define HCAMEMCTL_HOLDINGS_HPP

#include <map>
#include <set>
#include <string>
#include <vector>

#include "driver.hpp"
#include "holders.hpp"
#include "missing.hpp"
#include "options.hpp"
#include "process.hpp"
#include "regions.hpp"

namespace ctl {

struct obtained_region {
    region_info region;
    creator_state creator = creator_state::unknown;
    std::string hca; ///< "" if it is gone
};

struct region_sum {
    std::uint64_t regions = 0;
    std::uint64_t bytes = 0;
    std::uint64_t charged = 0;

    void add(const region_info& region) {
        regions += 1;
        bytes += region.bytes;
        charged += region.charged;
    }
};

/// What one process obtained; by command too, since a pid may have been reused.
struct creator_key {
    pid_t pid = 0;
    uid_t uid = 0;
    std::string command;
    creator_state creator = creator_state::unknown;

    auto operator<=>(const creator_key&) const = default;
};

/// All dma-bufs, and how many of them a process has a descriptor of. The others
/// are kept by registrations (MRs) and other users inside the kernel, by
/// descriptors on their way through a socket, or by processes that were not seen.
struct dma_buf_counts {
    std::uint64_t total = 0;
    std::uint64_t with_descriptor = 0;
};

struct holding_report {
    usage_info usage; ///< of everybody, whatever narrows the rest
    bool regions_known = false;
    std::vector<obtained_region> regions;
    std::map<uid_t, region_sum> users;
    std::map<creator_key, region_sum> creators;
    std::vector<holder_info> holders;
    std::optional<dma_buf_counts> dma_bufs; ///< if nothing narrows the answer
    missing_parts missing;
};

/// Throws failure if the node or HCA asked for is nowhere to be found.
holding_report find_holdings(const command_options& options);

} // namespace ctl

#endif
