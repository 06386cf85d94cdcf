// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "driver.hpp"

#include <fcntl.h>
#include <rdma/hcamem.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>

#include "failure.hpp"

namespace ctl {

namespace {

const std::string module_folder = "/sys/module/hcamem";
const std::string class_folder = "/sys/class/hcamem";

/// N of "hcamemN".
std::uint64_t number_of(std::string_view name) {
    const auto digits = name.find_first_of("0123456789");
    return parse_number(name.substr(std::min(digits, name.size()))).value_or(~0ULL);
}

std::optional<node_info> read_node(const std::string& name) {
    const std::string folder = class_folder + '/' + name + '/';
    const file_text hca = read_file(folder + "ibdev");
    const auto bytes = read_number(folder + "bytes_in_use");
    const auto regions = read_number(folder + "regions");
    if (!hca || !bytes || !regions) {
        return std::nullopt;
    }
    node_info node{name, std::string(trimmed(hca.text)), {}, *bytes, *regions};
    // "-1" where the HCA has none, which is not a number here.
    if (const auto numa = read_number(folder + "numa_node")) {
        node.numa_node = static_cast<int>(*numa);
    }
    return node;
}

std::optional<hcamem_info> ask(const std::vector<node_info>& nodes) {
    for (const node_info& node : nodes) {
        const unique_fd fd(open(node.path().c_str(), O_RDONLY | O_CLOEXEC));
        hcamem_info info{};
        if (fd && ioctl(fd.get(), HCAMEM_IOC_INFO, &info) == 0) {
            return info;
        }
    }
    return std::nullopt;
}

} // namespace

void require_module() {
    if (access(module_folder.c_str(), F_OK) != 0) {
        throw failure(exit_code::absent,
                      "the kernel module hcamem is not loaded; load it, as root, with "
                      "'modprobe hcamem'");
    }
}

std::vector<node_info> find_nodes() {
    std::vector<std::string> names;
    list_folder(class_folder, names);
    std::sort(names.begin(), names.end(), [](const std::string& left, const std::string& right) {
        return number_of(left) < number_of(right);
    });
    std::vector<node_info> nodes;
    for (const std::string& name : names) {
        if (auto node = read_node(name)) {
            nodes.push_back(std::move(*node));
        }
    }
    return nodes;
}

std::string node_name(const std::string& given) {
    const std::string name = given.substr(given.rfind('/') + 1);
    return parse_number(name) ? "hcamem" + name : name;
}

const node_info& node_of_hca(const std::vector<node_info>& nodes, const std::string& hca) {
    for (const node_info& node : nodes) {
        if (node.hca == hca) {
            return node;
        }
    }
    throw failure(exit_code::absent,
                  "no node belongs to an HCA '" + hca + "'; there are: " + describe(nodes));
}

std::string describe(const std::vector<node_info>& nodes) {
    std::string text;
    for (const node_info& node : nodes) {
        text += (text.empty() ? "" : ", ") + node.name + " (" + node.hca + ")";
    }
    return text.empty() ? "none" : text;
}

const char* limit_name(limit_kind limit) {
    switch (limit) {
    case limit_kind::max_bytes:
        return "max_bytes";
    case limit_kind::max_bytes_per_user:
        return "max_bytes_per_user";
    case limit_kind::reserve_bytes:
        return "reserve_bytes";
    case limit_kind::low_bytes:
        return "low_bytes";
    case limit_kind::critical_bytes:
        break;
    }
    return "critical_bytes";
}

std::string limit_path(limit_kind limit) {
    return module_folder + "/parameters/" + limit_name(limit);
}

limit_values read_limits() {
    limit_values limits{};
    for (const limit_kind limit : all_limits) {
        const std::string path = limit_path(limit);
        const auto value = read_number(path);
        if (!value) {
            throw failure(exit_code::failed,
                          "cannot read " + path + "; is the loaded module of the same version?");
        }
        limits[index_of(limit)] = *value;
    }
    return limits;
}

memory_info read_memory() {
    memory_info memory;
    const file_text file = read_file("/proc/meminfo");
    for_each_line(file.text, [&memory](std::string_view line) {
        for (auto [name, to] : {std::pair("MemTotal:", &memory.total),
                                std::pair("MemAvailable:", &memory.available)}) {
            if (!line.starts_with(name)) {
                continue;
            }
            line.remove_prefix(std::strlen(name));
            line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
            *to = parse_number(line.substr(0, line.find(' '))).value_or(0) * 1024;
        }
    });
    return memory;
}

usage_info read_usage(std::vector<node_info>& nodes) {
    const auto before = ask(nodes);
    if (!before) {
        return {};
    }
    std::uint64_t through_nodes = 0;
    for (node_info& node : nodes) {
        node = read_node(node.name).value_or(node);
        through_nodes += node.bytes;
    }
    const auto after = ask(nodes);
    usage_info usage{before->total_bytes, before->user_bytes, {}};
    // Without a moment of rest the difference would mean nothing.
    if (after && after->total_bytes == before->total_bytes &&
        before->total_bytes >= through_nodes) {
        usage.gone = before->total_bytes - through_nodes;
    }
    return usage;
}

} // namespace ctl
