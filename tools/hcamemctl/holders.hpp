// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Processes that have a node open, a region mapped or a dma-buf of one.
#ifndef HCAMEMCTL_HOLDERS_HPP
#define HCAMEMCTL_HOLDERS_HPP

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "missing.hpp"

namespace ctl {

/// A descriptor of a node, from fdinfo.
struct node_file {
    int fd = -1;
    std::string node;
    bool gone = false; ///< the HCA is
    std::uint64_t unmapped_regions = 0;
    std::uint64_t unmapped_bytes = 0;
};

/// A descriptor of a dma-buf of hcamem, from fdinfo.
struct dma_buf_file {
    int fd = -1;
    std::uint64_t inode = 0; ///< the same for every descriptor of one dma-buf
    std::uint64_t bytes = 0;
};

/// What of a node's regions, or of dma-bufs, is mapped.
struct mapped_bytes {
    std::uint64_t areas = 0;
    std::uint64_t bytes = 0;
};

struct holder_info {
    pid_t pid = 0;
    uid_t uid = 0; ///< effective
    std::string command;
    std::vector<node_file> nodes;
    std::vector<dma_buf_file> dma_bufs;
    std::map<std::string, mapped_bytes> mapped; ///< by node; "" for those of a dma-buf
    /// What a fork made ordinary zero-filled memory: it holds no region, but its
    /// areas keep the node open and so the module in use.
    std::uint64_t wiped_bytes = 0;

    [[nodiscard]] bool holds() const {
        return !nodes.empty() || !dma_bufs.empty() || !mapped.empty() || wiped_bytes != 0;
    }
};

/// What an fdinfo text says; nothing if it is of something else.
std::optional<node_file> parse_node_file(std::string_view fdinfo);
std::optional<dma_buf_file> parse_dma_buf_file(std::string_view fdinfo);

/// By pid. Says in missing which processes could not be looked at; one that
/// ends meanwhile is not missed.
std::vector<holder_info> find_holders(missing_parts& missing);

} // namespace ctl

#endif
