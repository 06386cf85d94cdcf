// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "holdings.hpp"

#include <algorithm>

#include "failure.hpp"

namespace ctl {

namespace {

/// What the options leave in.
struct answer_filter {
    std::optional<std::string> node;
    std::optional<pid_t> pid;
    std::optional<uid_t> uid;

    [[nodiscard]] bool narrows() const { return node || pid || uid; }
    [[nodiscard]] bool takes(const region_info& region) const {
        return (!node || region.node == *node) && (!pid || region.pid == *pid) &&
               (!uid || region.uid == *uid);
    }
    [[nodiscard]] bool takes(const holder_info& holder) const {
        return (!node || uses(holder, *node)) && (!pid || holder.pid == *pid) &&
               (!uid || holder.uid == *uid);
    }
    /// A dma-buf does not tell its node, so that having one is not enough.
    static bool uses(const holder_info& holder, const std::string& node) {
        return holder.mapped.contains(node) ||
               std::any_of(holder.nodes.begin(), holder.nodes.end(),
                           [&node](const node_file& file) { return file.node == node; });
    }
};

answer_filter make_filter(const std::vector<node_info>& nodes, const command_options& options) {
    answer_filter filter{options.node, options.pid, options.uid};
    if (options.hca) {
        filter.node = node_of_hca(nodes, *options.hca).name;
    }
    return filter;
}

/// A node may be gone and live on in what was obtained through it.
bool exists(const std::string& node, const std::vector<node_info>& nodes,
            const region_list& regions, const std::vector<holder_info>& holders) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&node](const node_info& one) { return one.name == node; }) ||
           std::any_of(regions.list.begin(), regions.list.end(),
                       [&node](const region_info& region) { return region.node == node; }) ||
           std::any_of(holders.begin(), holders.end(), [&node](const holder_info& holder) {
               return answer_filter::uses(holder, node);
           });
}

std::string hca_of(const std::vector<node_info>& nodes, const std::string& name) {
    for (const node_info& node : nodes) {
        if (node.name == name) {
            return node.hca;
        }
    }
    return {};
}

} // namespace

holding_report find_holdings(const command_options& options) {
    std::vector<node_info> nodes = find_nodes();
    const answer_filter filter = make_filter(nodes, options);
    holding_report holdings;
    holdings.usage = read_usage(nodes);
    region_list regions = read_regions(holdings.missing);
    std::vector<holder_info> holders = find_holders(holdings.missing);
    if (filter.node && !exists(*filter.node, nodes, regions, holders)) {
        throw failure(exit_code::absent,
                      "there is no node '" + *filter.node + "'; there are: " + describe(nodes));
    }

    dma_buf_counts dma_bufs;
    holdings.regions_known = regions.known;
    for (region_info& region : regions.list) {
        if (!filter.takes(region)) {
            continue;
        }
        const creator_state creator = creator_of(region);
        holdings.users[region.uid].add(region);
        holdings.creators[{region.pid, region.uid, region.command, creator}].add(region);
        dma_bufs.total += region.dma_bufs;
        std::string hca = hca_of(nodes, region.node);
        holdings.regions.push_back({std::move(region), creator, std::move(hca)});
    }
    std::set<std::uint64_t> inodes;
    for (holder_info& holder : holders) {
        for (const dma_buf_file& file : holder.dma_bufs) {
            inodes.insert(file.inode);
        }
        if (filter.takes(holder)) {
            holdings.holders.push_back(std::move(holder));
        }
    }
    dma_bufs.with_descriptor = inodes.size();
    if (regions.known && !filter.narrows()) {
        holdings.dma_bufs = dma_bufs;
    }
    return holdings;
}

} // namespace ctl
