// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "pressure/memory_cgroup.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <fcntl.h>

namespace hcamem::core {
namespace {

constexpr std::uint64_t none = UINT64_MAX;

// Room for memory.stat, the longest of these files.
using page = std::array<char, 8192>;

std::string_view read_start(int descriptor, page& text) noexcept {
    const ssize_t length = pread(descriptor, text.data(), text.size(), 0);
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

/// A file of one number; `none` for "max" and for a file that is not there.
std::uint64_t read_number(const std::string& path) noexcept {
    const file opened(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    page text{};
    const std::string_view start =
        opened ? read_start(opened.descriptor(), text) : std::string_view();
    std::uint64_t number = none;
    std::from_chars(start.data(), start.data() + start.size(), number);
    return number;
}

/// The number behind a name at the beginning of a line; 0 without such a line.
std::uint64_t field(std::string_view text, std::string_view name) noexcept {
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ') {
            std::uint64_t number = 0;
            std::from_chars(line.data() + name.size() + 1, line.data() + line.size(), number);
            return number;
        }
        text.remove_prefix(std::min(text.size(), line.size() + 1));
    }
    return 0;
}

/// The path of this process below the root, "" for the root itself.
std::string own_path() {
    const file opened(open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC));
    page text{};
    std::string_view rest = opened ? read_start(opened.descriptor(), text) : std::string_view();
    constexpr std::string_view version2 = "0::/";
    while (!rest.empty()) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        if (line.starts_with(version2)) {
            const std::string_view path = line.substr(version2.size() - 1);
            return path == "/" ? std::string() : std::string(path);
        }
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    }
    return {};
}

} // namespace

std::vector<memory_cgroup> memory_cgroup::of_this_process() {
    return levels_of("/sys/fs/cgroup", own_path());
}

std::vector<memory_cgroup> memory_cgroup::levels_of(const std::string& root, std::string path) {
    std::vector<memory_cgroup> levels;
    for (;;) {
        std::string folder = root;
        folder += path;
        // The root of the machine has none; that of a container's namespace has.
        file events(open((folder + "/memory.events").c_str(), O_RDONLY | O_CLOEXEC));
        if (events) {
            levels.push_back(memory_cgroup(std::move(folder), std::move(events)));
        }
        if (path.empty()) {
            return levels;
        }
        path.erase(path.rfind('/'));
    }
}

memory_cgroup::memory_cgroup(std::string folder, file events)
    : folder_(std::move(folder)), events_(std::move(events)), seen_(read_counts()) {}

memory_cgroup::counts memory_cgroup::read_counts() const noexcept {
    page text{};
    const std::string_view all = read_start(events_.descriptor(), text);
    return {field(all, "high") + field(all, "max"), field(all, "oom")};
}

std::uint64_t memory_cgroup::limit() const noexcept {
    return std::min(read_number(folder_ + "/memory.high"), read_number(folder_ + "/memory.max"));
}

/// What is charged and cannot be had by dropping page cache.
std::uint64_t memory_cgroup::used() const noexcept {
    const std::uint64_t charged = read_number(folder_ + "/memory.current");
    if (charged == none) {
        return 0;
    }
    const file opened(open((folder_ + "/memory.stat").c_str(), O_RDONLY | O_CLOEXEC));
    page text{};
    const std::string_view all =
        opened ? read_start(opened.descriptor(), text) : std::string_view();
    const std::uint64_t cache =
        field(all, "inactive_file") + field(all, "active_file") + field(all, "slab_reclaimable");
    return charged - std::min(charged, cache);
}

hcamem_pressure memory_cgroup::look() noexcept {
    hcamem_pressure found{};
    const counts now = read_counts();
    const bool killed = now.killed != seen_.killed;
    const bool met = killed || now.met != seen_.met;
    seen_ = now;
    const std::uint64_t most = met ? limit() : none;
    if (most == none) {
        return found;
    }
    // The same parts of a limit that the module takes of the machine's memory.
    const std::uint64_t low = most - most / 8;
    const std::uint64_t critical = most - most / 32;
    const std::uint64_t taken = used();
    if (taken > low) {
        found.level = killed || taken > critical ? HCAMEM_PRESSURE_CRITICAL : HCAMEM_PRESSURE_LOW;
        found.wanted = taken - low;
    }
    return found;
}

} // namespace hcamem::core
