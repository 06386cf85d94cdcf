// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What everybody may read about the module: nodes, limits, usage, memory.
#ifndef HCAMEMCTL_DRIVER_HPP
#define HCAMEMCTL_DRIVER_HPP

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "files.hpp"

namespace ctl {

/// Throws failure with what to do if the module is not loaded.
void require_module();

/// A node of an HCA that is there.
struct node_info {
    std::string name; ///< such as "hcamem0"
    std::string hca;
    std::optional<int> numa_node;
    std::uint64_t bytes = 0; ///< in use, all users
    std::uint64_t regions = 0;

    [[nodiscard]] std::string path() const { return "/dev/infiniband/" + name; }
};

/// In the order of their numbers. A node that goes meanwhile is left out.
std::vector<node_info> find_nodes();

/// "3", "hcamem3" and "/dev/infiniband/hcamem3" all name hcamem3.
std::string node_name(const std::string& given);

/// Node of an HCA; throws failure with the HCAs that have one.
const node_info& node_of_hca(const std::vector<node_info>& nodes, const std::string& hca);

/// The names of nodes with their HCAs, for messages: "hcamem0 (rxe0), hcamem1 (rxe1)".
std::string describe(const std::vector<node_info>& nodes);

/// Module parameters that hold bytes.
enum class limit_kind { max_bytes, max_bytes_per_user, reserve_bytes, low_bytes, critical_bytes };
constexpr std::size_t limit_count = 5;
using limit_values = std::array<std::uint64_t, limit_count>;

const char* limit_name(limit_kind limit);
std::string limit_path(limit_kind limit);
constexpr std::size_t index_of(limit_kind limit) {
    return static_cast<std::size_t>(limit);
}
constexpr std::array<limit_kind, limit_count> all_limits{
    limit_kind::max_bytes, limit_kind::max_bytes_per_user, limit_kind::reserve_bytes,
    limit_kind::low_bytes, limit_kind::critical_bytes};

/// All of them; throws failure if one cannot be read.
limit_values read_limits();

/// /proc/meminfo, bytes.
struct memory_info {
    std::uint64_t total = 0;
    std::uint64_t available = 0;
};
memory_info read_memory();

/// What is handed out, through whatever node. Nothing where no node could be asked.
struct usage_info {
    std::optional<std::uint64_t> total; ///< all users
    std::optional<std::uint64_t> user;  ///< the user who asks
    std::optional<std::uint64_t> gone;  ///< of the total, through HCAs that are gone
};
/// Brings the nodes' bytes to the same moment as the total, as far as possible.
usage_info read_usage(std::vector<node_info>& nodes);

} // namespace ctl

#endif
