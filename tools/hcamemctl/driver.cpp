// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "driver.hpp"

#include <fcntl.h>
#include <rdma/hcamem.h>
#include <sys/ioctl.h>

#include <algorithm>

#include "failure.hpp"
#include "files.hpp"

namespace ctl {

namespace {

const std::string class_folder = "/sys/class/hcamem";

std::optional<node_info> read_node(const std::string& name) {
    const std::string folder = class_folder + '/' + name;
    const std::string hca = read_file(folder + "/ibdev").text;
    const auto bytes = parse_number(read_file(folder + "/bytes_in_use").text);
    const auto regions = parse_number(read_file(folder + "/regions").text);
    if (hca.empty() || !bytes || !regions) {
        return std::nullopt;
    }
    node_info node{name, hca.substr(0, hca.find('\n')), {}, *bytes, *regions};
    // "-1" where the HCA has none, which is not a number here.
    if (const auto numa = parse_number(read_file(folder + "/numa_node").text)) {
        node.numa_node = static_cast<int>(*numa);
    }
    return node;
}

} // namespace

std::vector<node_info> find_nodes() {
    if (access(class_folder.c_str(), F_OK) != 0) {
        throw failure(exit_code::absent, "the kernel module hcamem is not loaded; load it, as "
                                         "root, with 'modprobe hcamem'");
    }
    std::vector<node_info> nodes;
    for (const std::string& name : names_in(class_folder)) {
        if (auto node = read_node(name)) {
            nodes.push_back(std::move(*node));
        }
    }
    // Shorter numbers are smaller.
    std::sort(nodes.begin(), nodes.end(), [](const node_info& left, const node_info& right) {
        return std::pair(left.name.size(), left.name) < std::pair(right.name.size(), right.name);
    });
    return nodes;
}

std::optional<usage_info> read_usage(const std::vector<node_info>& nodes) {
    for (const node_info& node : nodes) {
        const unique_fd fd(open(node.path().c_str(), O_RDONLY | O_CLOEXEC));
        hcamem_info info{};
        if (fd && ioctl(fd.get(), HCAMEM_IOC_INFO, &info) == 0) {
            return usage_info{info.total_bytes, info.user_bytes};
        }
    }
    return std::nullopt;
}

std::uint64_t read_limit(const std::string& name) {
    const std::string path = "/sys/module/hcamem/parameters/" + name;
    const auto value = parse_number(read_file(path).text);
    if (!value) {
        throw failure(exit_code::failed,
                      "cannot read " + path + "; is the loaded module of the same version?");
    }
    return *value;
}

std::uint64_t available_memory() {
    const file_text file = read_file("/proc/meminfo");
    const std::string_view kib = field(file.text, "MemAvailable");
    return parse_number(kib.substr(0, kib.find(' '))).value_or(0) * 1024;
}

} // namespace ctl
