// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl list: nodes, usage and limits. Needs no privilege.
#include "commands.hpp"
#include "driver.hpp"
#include "json.hpp"
#include "text.hpp"

namespace ctl {

namespace {

std::string json_of(const std::vector<node_info>& nodes, const std::optional<usage_info>& usage) {
    json answer{{"nodes", json::array()}};
    for (const node_info& node : nodes) {
        answer["nodes"].push_back({{"node", node.name},
                                   {"hca", node.hca},
                                   {"path", node.path()},
                                   {"numa_node", json_or_null(node.numa_node)},
                                   {"bytes_in_use", node.bytes},
                                   {"regions", node.regions}});
    }
    answer["total_bytes"] = usage ? json(usage->total) : json();
    answer["user_bytes"] = usage ? json(usage->user) : json();
    for (const char* name : limit_names) {
        answer["limits"][name] = read_limit(name);
    }
    answer["available_bytes"] = available_memory();
    return line_of(answer);
}

std::string text_of(const std::vector<node_info>& nodes, const std::optional<usage_info>& usage) {
    std::vector<std::vector<std::string>> node_rows{
        {"NODE", "HCA", ">NUMA", ">IN USE", ">REGIONS"}};
    for (const node_info& node : nodes) {
        node_rows.push_back({node.name, printable(node.hca),
                             node.numa_node ? std::to_string(*node.numa_node) : "",
                             human_size(node.bytes), std::to_string(node.regions)});
    }
    const std::string total = usage ? human_size(usage->total) : "unknown";
    const std::string user = usage ? human_size(usage->user) : "unknown";
    const std::string available = human_size(available_memory()) + " available";
    const std::string now[] = {total + " handed out", user + " by " + user_name(getuid()),
                               available, available, available};
    static_assert(std::size(now) == limit_names.size());
    std::vector<std::vector<std::string>> limit_rows{{"LIMIT", ">VALUE", "NOW"}};
    for (std::size_t i = 0; i < limit_names.size(); ++i) {
        const std::uint64_t value = read_limit(limit_names[i]);
        const bool none = value == 0 && limit_names[i] == std::string("max_bytes_per_user");
        limit_rows.push_back({limit_names[i], none ? "none" : human_size(value), now[i]});
    }
    const std::string first =
        nodes.empty() ? "No HCA has a node: there is none, or its driver is not loaded.\n"
                      : table_text(node_rows);
    return first + '\n' + table_text(limit_rows);
}

} // namespace

exit_code list(const command_options& options) {
    const std::vector<node_info> nodes = find_nodes();
    const auto usage = read_usage(nodes);
    print(options.json ? json_of(nodes, usage) : text_of(nodes, usage));
    return exit_code::success;
}

} // namespace ctl
