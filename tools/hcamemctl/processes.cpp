// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "processes.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include "files.hpp"

namespace ctl {

namespace {

/// Node behind a descriptor, "" for a dma-buf of hcamem, nothing for anything else.
std::optional<std::string> node_of_descriptor(const std::string& folder, const std::string& fd) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(folder + "/fd/" + fd, error);
    const bool dma_buf = target.starts_with("/dmabuf:");
    if (!dma_buf && !target.starts_with("/dev/")) {
        return std::nullopt;
    }
    const std::string fdinfo = read_file(folder + "/fdinfo/" + fd).text;
    if (dma_buf) {
        // The first such line is the kernel's; what follows may be part of a name
        // that a user gave to the dma-buf.
        return field(fdinfo, "exp_name") == "hcamem" ? std::optional("") : std::nullopt;
    }
    const std::string_view node = field(fdinfo, "hcamem-node");
    return node.empty() ? std::nullopt : std::optional<std::string>(node);
}

/// Node behind the path of a mapped area, as above.
std::optional<std::string> node_of_path(const std::string& path) {
    if (path.starts_with("anon_inode:[hcamem]")) {
        return "";
    }
    constexpr std::string_view folder = "/dev/infiniband/";
    if (!path.starts_with(std::string(folder) + "hcamem")) {
        return std::nullopt;
    }
    // Without the " (deleted)" of a node whose HCA is gone.
    return path.substr(folder.size(), path.find(' ') - folder.size());
}

/// "7f0000000000-7f0000200000 rw-s 00000000 00:05 123    /dev/infiniband/hcamem0"
void look_at_area(const std::string& line, process_info& process) {
    std::istringstream words(line);
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    char dash = 0;
    std::string mode;
    std::string skipped;
    std::string path;
    words >> std::hex >> start >> dash >> end >> mode >> skipped >> skipped >> skipped >> std::ws;
    if (!std::getline(words, path)) {
        return;
    }
    if (const auto node = node_of_path(path)) {
        node_use& use = process.uses[*node];
        (mode.ends_with('s') ? use.mapped_bytes : use.wiped_bytes) += end - start;
    }
}

/// One that ends meanwhile, or may not be looked at, uses nothing.
process_info look_at(pid_t pid) {
    const std::string folder = "/proc/" + std::to_string(pid);
    process_info process{pid, 0, {}, {}};
    for (const std::string& fd : names_in(folder + "/fd")) {
        if (const auto node = node_of_descriptor(folder, fd)) {
            ++process.uses[*node].descriptors;
        }
    }
    const std::string maps = read_file(folder + "/maps").text;
    for (const std::string_view line : lines_of(maps)) {
        look_at_area(std::string(line), process);
    }
    if (process.uses.empty()) {
        return process;
    }
    process.command = read_file(folder + "/comm").text;
    process.command.resize(process.command.empty() ? 0 : process.command.size() - 1);
    const std::string status = read_file(folder + "/status").text;
    uid_t real = 0;
    std::istringstream(std::string(field(status, "Uid"))) >> real >> process.uid;
    return process;
}

} // namespace

std::vector<process_info> find_processes(std::vector<std::string>& missing) {
    std::vector<process_info> processes;
    for (const std::string& name : names_in("/proc")) {
        if (const auto pid = parse_number(name)) {
            process_info process = look_at(static_cast<pid_t>(*pid));
            if (!process.uses.empty()) {
                processes.push_back(std::move(process));
            }
        }
    }
    std::sort(
        processes.begin(), processes.end(),
        [](const process_info& left, const process_info& right) { return left.pid < right.pid; });
    if (geteuid() != 0) {
        missing.emplace_back("the processes of other users: run hcamemctl as root");
    }
    return processes;
}

} // namespace ctl
