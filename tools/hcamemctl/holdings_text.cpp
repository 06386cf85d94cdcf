// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The tables of `show`.
#include <unistd.h>

#include "holdings_format.hpp"
#include "table.hpp"
#include "text.hpp"

namespace ctl {

namespace {

using alignment = text_table::alignment;

std::string creator_text(creator_state creator) {
    return creator == creator_state::reused ? "dead (pid reused)" : to_string(creator);
}

std::string chunks_text(const std::vector<chunk_run>& chunks) {
    std::string text;
    for (const chunk_run& some : chunks) {
        text +=
            (text.empty() ? "" : " ") + human_size(some.bytes) + "x" + std::to_string(some.count);
    }
    return text;
}

std::string regions_text(const holding_report& holdings, user_names& users) {
    text_table table({{"REGION", alignment::right},
                      {"NODE"},
                      {"HCA"},
                      {"USER"},
                      {"PID", alignment::right},
                      {"COMMAND"},
                      {"CREATOR"},
                      {"AGE", alignment::right},
                      {"SIZE", alignment::right},
                      {"CHARGED", alignment::right},
                      {"STATE"},
                      {"MODE"},
                      {"FORK"},
                      {"MAPPINGS", alignment::right},
                      {"DMA-BUFS", alignment::right},
                      {"CHUNKS"}});
    for (const auto& [region, creator, hca] : holdings.regions) {
        const auto age = region.age_seconds();
        table.row({std::to_string(region.id), printable(region.node), printable(hca),
                   users.label(region.uid), std::to_string(region.pid), printable(region.command),
                   creator_text(creator), age ? human_age(*age) : "", human_size(region.bytes),
                   human_size(region.charged), region.state(), printable(region.mapping),
                   printable(region.fork), std::to_string(region.mappings),
                   std::to_string(region.dma_bufs), chunks_text(region.chunks)});
    }
    return table.text();
}

std::string sums_text(const holding_report& holdings, user_names& users) {
    text_table by_user({{"USER"},
                        {"REGIONS", alignment::right},
                        {"SIZE", alignment::right},
                        {"CHARGED", alignment::right}});
    for (const auto& [uid, sum] : holdings.users) {
        by_user.row({users.label(uid), std::to_string(sum.regions), human_size(sum.bytes),
                     human_size(sum.charged)});
    }
    text_table by_process({{"PID", alignment::right},
                           {"COMMAND"},
                           {"USER"},
                           {"CREATOR"},
                           {"REGIONS", alignment::right},
                           {"SIZE", alignment::right},
                           {"CHARGED", alignment::right}});
    for (const auto& [creator, sum] : holdings.creators) {
        by_process.row({std::to_string(creator.pid), printable(creator.command),
                        users.label(creator.uid), creator_text(creator.creator),
                        std::to_string(sum.regions), human_size(sum.bytes),
                        human_size(sum.charged)});
    }
    return "\nObtained, by user\n" + by_user.text() + "\nObtained, by process\n" +
           by_process.text();
}

std::string mapped_text(const holder_info& holder) {
    std::string text;
    for (const auto& [node, mapped] : holder.mapped) {
        text += (text.empty() ? "" : ", ") + human_size(mapped.bytes) +
                (node.empty() ? " of dma-bufs" : " of " + printable(node));
    }
    return text;
}

std::string open_text(const holder_info& holder) {
    std::map<std::string, std::size_t> counts;
    for (const node_file& file : holder.nodes) {
        ++counts[file.node + (file.gone ? " (gone)" : "")];
    }
    std::string text;
    for (const auto& [node, count] : counts) {
        text += (text.empty() ? "" : ", ") + printable(node) +
                (count > 1 ? " x" + std::to_string(count) : "");
    }
    return text;
}

std::string dma_bufs_text(const holder_info& holder) {
    std::map<std::uint64_t, std::uint64_t> sizes;
    for (const dma_buf_file& file : holder.dma_bufs) {
        sizes[file.inode] = file.bytes;
    }
    std::uint64_t bytes = 0;
    for (const auto& [inode, size] : sizes) {
        bytes += size;
    }
    return sizes.empty() ? "" : std::to_string(sizes.size()) + " of " + human_size(bytes);
}

std::string holders_text(const holding_report& holdings, user_names& users) {
    text_table table({{"PID", alignment::right},
                      {"COMMAND"},
                      {"USER"},
                      {"OPEN"},
                      {"MAPPED"},
                      {"DMA-BUFS"},
                      {"WIPED BY FORK", alignment::right}});
    for (const holder_info& holder : holdings.holders) {
        table.row({std::to_string(holder.pid), printable(holder.command), users.label(holder.uid),
                   open_text(holder), mapped_text(holder), dma_bufs_text(holder),
                   holder.wiped_bytes == 0 ? "" : human_size(holder.wiped_bytes)});
    }
    return table.empty()
               ? "No process seen has a node open, a region mapped or a dma-buf.\n"
               : "Processes that have a node open, a region mapped or a dma-buf\n" + table.text();
}

} // namespace

std::string text_of(const holding_report& holdings, user_names& users) {
    std::string text;
    if (holdings.regions_known && holdings.regions.empty()) {
        text = "No such region is handed out.\n\n";
    } else if (holdings.regions_known) {
        text = regions_text(holdings, users) + sums_text(holdings, users) + '\n';
    }
    if (!holdings.regions_known && holdings.usage.total) {
        text = "Handed out: " + human_size(*holdings.usage.total) + " in all, " +
               human_size(holdings.usage.user.value_or(0)) + " of that to " +
               users.label(getuid()) + ".\n\n";
    }
    text += holders_text(holdings, users);
    if (holdings.dma_bufs && holdings.dma_bufs->total != 0) {
        text += "\nDma-bufs: " + std::to_string(holdings.dma_bufs->total) + ", of which " +
                std::to_string(holdings.dma_bufs->with_descriptor) +
                " in a descriptor of a process above; memory regions (MRs) keep the others.\n";
    }
    return text;
}

} // namespace ctl
