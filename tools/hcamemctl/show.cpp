// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl show: who holds how much.
#include <algorithm>
#include <map>
#include <tuple>

#include "commands.hpp"
#include "driver.hpp"
#include "json.hpp"
#include "processes.hpp"
#include "regions.hpp"
#include "text.hpp"

namespace ctl {

namespace {

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

/// A process that obtained regions; by name and state too, since a pid may be used again.
using creator_key = std::tuple<pid_t, uid_t, std::string, creator_state>;

struct holdings {
    std::map<std::string, std::string> hcas; ///< by node; of those that are there
    std::optional<std::vector<region_info>> regions;
    std::map<uid_t, region_sum> users;
    std::map<creator_key, region_sum> creators;
    std::vector<process_info> processes;
    std::vector<std::string> missing;

    [[nodiscard]] std::string hca(const std::string& node) const {
        const auto found = hcas.find(node);
        return found == hcas.end() ? "" : found->second;
    }
};

/// Takes out what the options do not ask for.
void narrow(holdings& all, const command_options& options) {
    const auto without = [&all](const auto& unwanted_region, const auto& unwanted_process) {
        if (all.regions) {
            std::erase_if(*all.regions, unwanted_region);
        }
        std::erase_if(all.processes, unwanted_process);
    };
    if (options.node) {
        std::string name = options.node->substr(options.node->rfind('/') + 1);
        for (const auto& [node, hca] : all.hcas) {
            name = hca == name ? node : name;
        }
        for (process_info& process : all.processes) {
            std::erase_if(process.uses, [&](const auto& use) { return use.first != name; });
        }
        without([&](const region_info& region) { return region.node != name; },
                [](const process_info& process) { return process.uses.empty(); });
        // One whose HCA is gone lives on in who holds something of it.
        if (!all.hcas.contains(name) && all.processes.empty() &&
            (!all.regions || all.regions->empty())) {
            throw failure(exit_code::absent,
                          "there is no node or HCA '" + name + "'; see 'hcamemctl list'");
        }
    }
    if (options.pid) {
        without([&](const region_info& region) { return region.pid != *options.pid; },
                [&](const process_info& process) { return process.pid != *options.pid; });
    }
    if (options.uid) {
        without([&](const region_info& region) { return region.uid != *options.uid; },
                [&](const process_info& process) { return process.uid != *options.uid; });
    }
}

holdings find_holdings(const command_options& options) {
    holdings found;
    for (const node_info& node : find_nodes()) {
        found.hcas[node.name] = node.hca;
    }
    found.regions = read_regions(found.missing);
    found.processes = find_processes(found.missing);
    narrow(found, options);
    for (const region_info& region : found.regions.value_or(std::vector<region_info>())) {
        found.users[region.uid].add(region);
        found.creators[{region.pid, region.uid, region.command, region.creator()}].add(region);
    }
    return found;
}

json json_of(const region_info& region, const std::string& hca) {
    json chunks = json::array();
    for (const chunk_run& run : region.chunks) {
        chunks.push_back({{"bytes", run.bytes}, {"count", run.count}});
    }
    return {{"region", region.id},
            {"node", region.node},
            {"hca", hca.empty() ? json() : json(hca)},
            {"uid", region.uid},
            {"user", user_name(region.uid)},
            {"pid", region.pid},
            {"command", region.command},
            {"creator", to_string(region.creator())},
            {"age_seconds", region.age_seconds()},
            {"bytes", region.bytes},
            {"charged_bytes", region.charged},
            {"state", region.state()},
            {"mapping", region.mapping},
            {"fork", region.fork},
            {"mappings", region.mappings},
            {"dma_bufs", region.dma_bufs},
            {"chunks", chunks}};
}

json with_sum(json of, const region_sum& sum) {
    of["regions"] = sum.regions;
    of["bytes"] = sum.bytes;
    of["charged_bytes"] = sum.charged;
    return of;
}

std::string json_of(const holdings& all) {
    json answer{{"missing", all.missing},
                {"regions", nullptr},
                {"users", nullptr},
                {"creators", nullptr},
                {"processes", json::array()}};
    if (all.regions) {
        answer["regions"] = answer["users"] = answer["creators"] = json::array();
        for (const region_info& region : *all.regions) {
            answer["regions"].push_back(json_of(region, all.hca(region.node)));
        }
        for (const auto& [uid, sum] : all.users) {
            answer["users"].push_back(with_sum({{"uid", uid}, {"user", user_name(uid)}}, sum));
        }
        for (const auto& [creator, sum] : all.creators) {
            const auto& [pid, uid, command, state] = creator;
            answer["creators"].push_back(with_sum({{"pid", pid},
                                                   {"command", command},
                                                   {"uid", uid},
                                                   {"user", user_name(uid)},
                                                   {"creator", to_string(state)}},
                                                  sum));
        }
    }
    for (const process_info& process : all.processes) {
        json uses = json::array();
        for (const auto& [node, use] : process.uses) {
            uses.push_back({{"node", node.empty() ? json() : json(node)},
                            {"descriptors", use.descriptors},
                            {"mapped_bytes", use.mapped_bytes},
                            {"wiped_bytes", use.wiped_bytes}});
        }
        answer["processes"].push_back({{"pid", process.pid},
                                       {"command", process.command},
                                       {"uid", process.uid},
                                       {"user", user_name(process.uid)},
                                       {"uses", uses}});
    }
    return line_of(answer);
}

std::string regions_text(const holdings& all) {
    std::vector<std::vector<std::string>> rows{
        {">REGION", "NODE", "HCA", "USER", ">PID", "COMMAND", "CREATOR", ">AGE", ">SIZE",
         ">CHARGED", "STATE", "MODE", "FORK", ">MAPPINGS", ">DMA-BUFS", "CHUNKS"}};
    for (const region_info& region : *all.regions) {
        std::string chunks;
        for (const chunk_run& run : region.chunks) {
            chunks += (chunks.empty() ? "" : " ") + human_size(run.bytes) + "x" +
                      std::to_string(run.count);
        }
        rows.push_back({std::to_string(region.id), region.node, printable(all.hca(region.node)),
                        user_name(region.uid), std::to_string(region.pid),
                        printable(region.command), to_string(region.creator()),
                        human_age(region.age_seconds()), human_size(region.bytes),
                        human_size(region.charged), region.state(), region.mapping, region.fork,
                        std::to_string(region.mappings), std::to_string(region.dma_bufs), chunks});
    }
    return table_text(rows);
}

std::string sums_text(const holdings& all) {
    std::vector<std::vector<std::string>> users{{"USER", ">REGIONS", ">SIZE", ">CHARGED"}};
    for (const auto& [uid, sum] : all.users) {
        users.push_back({user_name(uid), std::to_string(sum.regions), human_size(sum.bytes),
                         human_size(sum.charged)});
    }
    std::vector<std::vector<std::string>> creators{
        {">PID", "COMMAND", "USER", "CREATOR", ">REGIONS", ">SIZE", ">CHARGED"}};
    for (const auto& [creator, sum] : all.creators) {
        const auto& [pid, uid, command, state] = creator;
        creators.push_back({std::to_string(pid), printable(command), user_name(uid),
                            to_string(state), std::to_string(sum.regions), human_size(sum.bytes),
                            human_size(sum.charged)});
    }
    return "\nObtained, by user\n" + table_text(users) + "\nObtained, by process\n" +
           table_text(creators);
}

std::string processes_text(const holdings& all) {
    std::vector<std::vector<std::string>> rows{
        {">PID", "COMMAND", "USER", "USES", ">DESCRIPTORS", ">MAPPED", ">WIPED BY FORK"}};
    for (const process_info& process : all.processes) {
        for (const auto& [node, use] : process.uses) {
            rows.push_back({std::to_string(process.pid), printable(process.command),
                            user_name(process.uid), node.empty() ? "dma-bufs" : printable(node),
                            std::to_string(use.descriptors), human_size(use.mapped_bytes),
                            human_size(use.wiped_bytes)});
        }
    }
    return "Processes that have a node open, a region mapped or a dma-buf\n" + table_text(rows);
}

std::string text_of(const holdings& all) {
    if (!all.regions) {
        return processes_text(all);
    }
    if (all.regions->empty()) {
        return "No such region is handed out.\n\n" + processes_text(all);
    }
    return regions_text(all) + sums_text(all) + '\n' + processes_text(all);
}

} // namespace

exit_code show(const command_options& options) {
    const holdings found = find_holdings(options);
    print(options.json ? json_of(found) : text_of(found));
    for (const std::string& part : found.missing) {
        say("not shown: " + part);
    }
    return found.missing.empty() ? exit_code::success : exit_code::incomplete;
}

} // namespace ctl
