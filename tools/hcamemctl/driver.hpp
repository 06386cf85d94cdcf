// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What everybody may read about the module: nodes, limits, usage.
#ifndef HCAMEMCTL_DRIVER_HPP
#define HCAMEMCTL_DRIVER_HPP

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ctl {

/// The node of an HCA that is there.
struct node_info {
    std::string name; ///< such as "hcamem0"
    std::string hca;
    std::optional<int> numa_node;
    std::uint64_t bytes = 0; ///< in use, all users
    std::uint64_t regions = 0;

    [[nodiscard]] std::string path() const { return "/dev/infiniband/" + name; }
};

/// In the order of their numbers; a node that goes meanwhile is left out. Throws
/// failure if the module is not loaded.
std::vector<node_info> find_nodes();

/// What is handed out, through whatever node.
struct usage_info {
    std::uint64_t total = 0; ///< all users
    std::uint64_t user = 0;  ///< the user who asks
};
/// Nothing if no node can be asked.
std::optional<usage_info> read_usage(const std::vector<node_info>& nodes);

/// Module parameters that hold bytes.
inline constexpr std::array limit_names{"max_bytes", "max_bytes_per_user", "reserve_bytes",
                                        "low_bytes", "critical_bytes"};
/// Value of one of them; throws failure.
std::uint64_t read_limit(const std::string& name);

/// Bytes of MemAvailable.
std::uint64_t available_memory();

} // namespace ctl

#endif
