// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Processes that have a node open, a region mapped, or a dma-buf of one; from /proc.
#ifndef HCAMEMCTL_PROCESSES_HPP
#define HCAMEMCTL_PROCESSES_HPP

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ctl {

/// How a process uses one node, or dma-bufs.
struct node_use {
    std::uint64_t descriptors = 0;
    std::uint64_t mapped_bytes = 0;
    /// What a fork made ordinary zero-filled memory: it holds no region, but
    /// keeps the node open and so the module in use.
    std::uint64_t wiped_bytes = 0;
};

struct process_info {
    pid_t pid = 0;
    uid_t uid = 0; ///< effective
    std::string command;
    std::map<std::string, node_use> uses; ///< by node; "" for dma-bufs, which do not tell theirs
};

/// By pid. Without privilege only those of this user, which missing says.
std::vector<process_info> find_processes(std::vector<std::string>& missing);

} // namespace ctl

#endif
