// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "regions.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <limits>
#include <map>

#include "files.hpp"

namespace ctl {

namespace {

/// seq_escape() of the kernel: a backslash and three octal digits.
std::string unescape(std::string_view text) {
    std::string plain;
    while (!text.empty()) {
        const auto code =
            text.size() >= 4 && text[0] == '\\' ? parse_number(text.substr(1, 3), 8) : std::nullopt;
        if (code && *code <= 0xff) {
            plain += static_cast<char>(static_cast<unsigned char>(*code));
            text.remove_prefix(4);
        } else {
            plain += text[0];
            text.remove_prefix(1);
        }
    }
    return plain;
}

/// "4194304x16 65536x3"
std::optional<std::vector<chunk_run>> parse_chunks(std::string_view text) {
    std::vector<chunk_run> chunks;
    while (!text.empty()) {
        const auto end = std::min(text.find(' '), text.size());
        const std::string_view one = text.substr(0, end);
        const auto cross = one.find('x');
        if (cross == std::string_view::npos) {
            return std::nullopt;
        }
        const auto bytes = parse_number(one.substr(0, cross));
        const auto count = parse_number(one.substr(cross + 1));
        if (!bytes || !count) {
            return std::nullopt;
        }
        chunks.push_back({*bytes, *count});
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return chunks;
}

using field_map = std::map<std::string_view, std::string_view>;

template <class Number>
bool take(const field_map& fields, const char* name, Number& to) {
    const auto field = fields.find(name);
    if (field == fields.end()) {
        return false;
    }
    const auto value = parse_number(field->second);
    if (!value || *value > std::numeric_limits<Number>::max()) {
        return false;
    }
    to = static_cast<Number>(*value);
    return true;
}

bool take(const field_map& fields, const char* name, std::string& to) {
    const auto field = fields.find(name);
    if (field != fields.end()) {
        to = field->second;
    }
    return field != fields.end();
}

/// Where debugfs is mounted, "" if it is not. The list of mounts is readable for all.
std::string debugfs() {
    std::string folder;
    const file_text mounts = read_file("/proc/self/mounts");
    for_each_line(mounts.text, [&folder](std::string_view line) {
        const auto start = line.find(' ') + 1;
        const auto end = line.find(' ', start);
        if (end != std::string_view::npos && line.substr(end).starts_with(" debugfs ")) {
            folder = unescape(line.substr(start, end - start));
        }
    });
    return folder;
}

missing_part why_not(const std::string& folder, int error) {
    missing_part missing{"regions and who obtained them", {}, {}};
    if (folder.empty()) {
        missing.reason = "debugfs is not mounted";
        missing.remedy = "mount it, as root, with 'mount -t debugfs none /sys/kernel/debug'";
    } else if (error == EACCES || error == EPERM) {
        missing.reason = "only root may read " + folder + "/hcamem/regions";
        missing.remedy = "run hcamemctl as root";
    } else {
        missing.reason = folder + "/hcamem/regions: " + std::strerror(error);
        missing.remedy = "see that kernel and module have debugfs";
    }
    return missing;
}

} // namespace

const char* region_info::state() const {
    if (mappings != 0) {
        return "mapped";
    }
    if (dma_bufs != 0) {
        return "exported";
    }
    return chunks.empty() ? "leftover" : "unmapped";
}

std::optional<std::uint64_t> region_info::age_seconds() const {
    constexpr std::uint64_t second = 1'000'000'000;
    timespec now{};
    if (!created || clock_gettime(CLOCK_BOOTTIME, &now) != 0) {
        return std::nullopt;
    }
    const auto seconds = static_cast<std::uint64_t>(now.tv_sec);
    return seconds - std::min(seconds, *created / second);
}

std::optional<region_info> parse_region(std::string_view line) {
    field_map fields;
    while (!line.empty()) {
        const auto equals = line.find('=');
        if (equals == std::string_view::npos) {
            return std::nullopt;
        }
        const std::string_view name = line.substr(0, equals);
        line.remove_prefix(equals + 1);
        // The one value with blanks in it is the last.
        const auto end = name == "chunks" ? line.size() : std::min(line.find(' '), line.size());
        fields[name] = line.substr(0, end);
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    region_info region;
    std::string command;
    std::string chunk_list;
    if (!take(fields, "region", region.id) || !take(fields, "node", region.node) ||
        !take(fields, "uid", region.uid) || !take(fields, "pid", region.pid) ||
        !take(fields, "bytes", region.bytes) || !take(fields, "charged", region.charged) ||
        !take(fields, "mapping", region.mapping) || !take(fields, "fork", region.fork) ||
        !take(fields, "mappings", region.mappings) || !take(fields, "dma_bufs", region.dma_bufs) ||
        !take(fields, "comm", command) || !take(fields, "chunks", chunk_list)) {
        return std::nullopt;
    }
    if (std::uint64_t created = 0; take(fields, "created", created)) {
        region.created = created;
    }
    region.command = unescape(command);
    auto chunks = parse_chunks(chunk_list);
    if (!chunks) {
        return std::nullopt;
    }
    region.chunks = std::move(*chunks);
    return region;
}

region_list read_regions(missing_parts& missing) {
    const std::string folder = debugfs();
    const file_text file =
        folder.empty() ? file_text{{}, ENOENT} : read_file(folder + "/hcamem/regions");
    if (!file) {
        missing.push_back(why_not(folder, file.error));
        return {};
    }
    // By id: the kernel may give a region twice if others go meanwhile.
    std::map<std::uint64_t, region_info> by_id;
    std::size_t strange = 0;
    for_each_line(file.text, [&](std::string_view line) {
        if (auto region = parse_region(line)) {
            by_id[region->id] = std::move(*region);
        } else {
            ++strange;
        }
    });
    if (strange != 0) {
        missing.push_back({std::to_string(strange) + " regions",
                           "their lines in " + folder + "/hcamem/regions are not understood",
                           "install module and hcamemctl of the same version"});
    }
    region_list regions{true, {}};
    for (auto& [id, region] : by_id) {
        regions.list.push_back(std::move(region));
    }
    return regions;
}

} // namespace ctl
