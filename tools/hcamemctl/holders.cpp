// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "holders.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <iterator>

#include "files.hpp"
#include "process.hpp"

namespace ctl {

namespace {

constexpr std::string_view node_prefix = "hcamem";

/// Value of the first line "NAME:\tvalue". What comes first is the kernel's; a
/// later line may be part of a name that a user gave to a dma-buf.
std::optional<std::string_view> field(std::string_view text, std::string_view name) {
    std::optional<std::string_view> value;
    for_each_line(text, [&](std::string_view line) {
        if (!value && line.size() > name.size() && line.starts_with(name) &&
            line[name.size()] == ':') {
            line.remove_prefix(name.size() + 1);
            value = trimmed(line.substr(std::min(line.find_first_not_of(" \t"), line.size())));
        }
    });
    return value;
}

std::uint64_t number_field(std::string_view text, std::string_view name) {
    return parse_number(field(text, name).value_or("")).value_or(0);
}

/// Major number of the nodes: what is a node is told by its number, not its name.
std::optional<std::uint64_t> node_major() {
    std::optional<std::uint64_t> number;
    const file_text devices = read_file("/proc/devices");
    for_each_line(devices.text, [&number](std::string_view line) {
        const auto last = line.rfind(' ');
        if (last != std::string_view::npos && line.substr(last + 1) == "hcamem") {
            const auto first = line.find_first_not_of(' ');
            number = parse_number(line.substr(first, last - first));
        }
    });
    return number;
}

/// What a file is, as far as it may be asked.
struct file_kind {
    bool known = false;
    std::optional<unsigned> node; ///< minor number, if it is a node
};

/// A file system that a user serves must not be able to hold us up: nothing but
/// what the kernel has at hand is asked for.
file_kind kind_of(int folder, const std::string& path, std::uint64_t major) {
    struct statx status {};
    const int flags = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
    if (statx(folder, path.c_str(), flags, STATX_TYPE, &status) != 0) {
        return {};
    }
    if (!S_ISCHR(status.stx_mode) || status.stx_rdev_major != major) {
        return {true, {}};
    }
    return {true, status.stx_rdev_minor};
}

/// Whether it is worth to ask what is behind a path: devices are in /dev, also
/// in containers, and whoever binds a node elsewhere mostly keeps its name.
bool may_be_node(std::string_view path) {
    return (path.starts_with("/dev/") && !path.starts_with("/dev/shm/")) ||
           path.find("/hcamem") != std::string_view::npos;
}

/// A line of /proc/PID/maps.
struct mapped_area {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    bool shared = false;
    std::string_view path; ///< "" if it has none
};

/// "7f0000000000-7f0000200000 rw-s 00000000 00:05 123    /dev/infiniband/hcamem0"
std::optional<mapped_area> parse_area(std::string_view line) {
    std::string_view fields[5];
    for (std::string_view& field : fields) {
        const auto end = std::min(line.find(' '), line.size());
        field = line.substr(0, end);
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    const auto dash = fields[0].find('-');
    if (dash == std::string_view::npos || fields[1].size() != 4) {
        return std::nullopt;
    }
    const auto start = parse_number(fields[0].substr(0, dash), 16);
    const auto end = parse_number(fields[0].substr(dash + 1), 16);
    if (!start || !end) {
        return std::nullopt;
    }
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return mapped_area{*start, *end, fields[1][3] == 's', line};
}

/// Its name in /proc/PID/map_files.
std::string link_of(const mapped_area& area) {
    char text[2 * 16 + 1];
    char* at = std::to_chars(text, std::end(text), area.start, 16).ptr;
    *at++ = '-';
    at = std::to_chars(at, std::end(text), area.end, 16).ptr;
    return "map_files/" + std::string(text, at);
}

/// Looks at one process after the other.
class process_scan {
  public:
    explicit process_scan(std::uint64_t major) : major_(major) {}

    /// 0, or the errno of the first thing that could not be read.
    int look(const std::string& pid, holder_info& holder) const {
        const unique_fd folder(open(("/proc/" + pid).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!folder) {
            return errno;
        }
        int error = look_at_descriptors(folder.get(), holder);
        if (error == 0) {
            error = look_at_areas(folder.get(), holder);
        }
        if (error == 0 && holder.holds()) {
            error = identify(folder.get(), holder);
        }
        return error;
    }

  private:
    static int identify(int folder, holder_info& holder) {
        const file_text stat = read_file("stat", folder);
        const file_text status = read_file("status", folder);
        const auto parsed = parse_stat(stat.text);
        const auto uid = parse_uid(status.text);
        if (!parsed || !uid) {
            return ESRCH;
        }
        holder.command = parsed->command;
        holder.uid = *uid;
        return 0;
    }

    int look_at_descriptors(int folder, holder_info& holder) const {
        std::vector<std::string> names;
        if (const int error = list_folder("fd", names, folder)) {
            return error;
        }
        for (const std::string& name : names) {
            const auto number = parse_number(name);
            char target[PATH_MAX];
            const std::string link = "fd/" + name;
            const ssize_t length = readlinkat(folder, link.c_str(), target, sizeof target);
            if (!number || length < 0) {
                continue; // closed meanwhile
            }
            look_at_descriptor(folder, static_cast<int>(*number), link,
                               {target, static_cast<std::size_t>(length)}, holder);
        }
        return 0;
    }

    void look_at_descriptor(int folder, int fd, const std::string& link, std::string_view target,
                            holder_info& holder) const {
        const auto fdinfo = [&] { return read_file("fdinfo/" + std::to_string(fd), folder).text; };
        if (target.starts_with("/dmabuf:")) {
            if (auto file = parse_dma_buf_file(fdinfo())) {
                file->fd = fd;
                holder.dma_bufs.push_back(*file);
            }
        } else if (may_be_node(target) && kind_of(folder, link, major_).node) {
            if (auto file = parse_node_file(fdinfo())) {
                file->fd = fd;
                holder.nodes.push_back(std::move(*file));
            }
        }
    }

    int look_at_areas(int folder, holder_info& holder) const {
        const file_text maps = read_file("maps", folder);
        for_each_line(maps.text, [&](std::string_view line) {
            const auto area = parse_area(line);
            const auto node = area ? node_of(folder, *area) : std::nullopt;
            if (!node) {
                return;
            }
            const std::uint64_t bytes = area->end - area->start;
            if (!area->shared) {
                holder.wiped_bytes += bytes;
                return;
            }
            mapped_bytes& mapped = holder.mapped[*node];
            mapped.areas += 1;
            mapped.bytes += bytes;
        });
        return maps.error;
    }

    /// Node behind an area, "" for a dma-buf. Who may not follow map_files sees only
    /// processes of his own, and has to believe the name.
    [[nodiscard]] std::optional<std::string> node_of(int folder, const mapped_area& area) const {
        if (area.path.starts_with("anon_inode:[hcamem]")) {
            return "";
        }
        if (!may_be_node(area.path)) {
            return std::nullopt;
        }
        const file_kind kind = kind_of(folder, link_of(area), major_);
        if (kind.node) {
            return std::string(node_prefix) + std::to_string(*kind.node);
        }
        if (kind.known || !area.path.starts_with("/dev/")) {
            return std::nullopt;
        }
        std::string_view name = area.path.substr(area.path.rfind('/') + 1);
        name = name.substr(0, name.find(' ')); // without " (deleted)"
        const bool numbered = name.starts_with(node_prefix) &&
                              parse_number(name.substr(node_prefix.size())).has_value();
        return numbered ? std::optional<std::string>(name) : std::nullopt;
    }

    std::uint64_t major_;
};

} // namespace

std::optional<node_file> parse_node_file(std::string_view fdinfo) {
    const auto node = field(fdinfo, "hcamem-node");
    if (!node || field(fdinfo, "exp_name")) {
        return std::nullopt;
    }
    node_file file;
    file.node = *node;
    file.gone = number_field(fdinfo, "hcamem-gone") != 0;
    file.unmapped_regions = number_field(fdinfo, "hcamem-unmapped-regions");
    file.unmapped_bytes = number_field(fdinfo, "hcamem-unmapped-bytes");
    return file;
}

std::optional<dma_buf_file> parse_dma_buf_file(std::string_view fdinfo) {
    if (field(fdinfo, "exp_name") != "hcamem") {
        return std::nullopt;
    }
    dma_buf_file file;
    file.inode = number_field(fdinfo, "ino");
    file.bytes = number_field(fdinfo, "size");
    return file;
}

std::vector<holder_info> find_holders(missing_parts& missing) {
    std::vector<holder_info> holders;
    std::vector<std::string> names;
    list_folder("/proc", names);
    // Process 1 is always there: who does not see it sees only his own.
    const bool hidden = std::find(names.begin(), names.end(), "1") == names.end();
    std::size_t refused = 0;
    const process_scan scan(node_major().value_or(0));
    for (const std::string& name : names) {
        holder_info holder;
        const auto [end, error] =
            std::from_chars(name.data(), name.data() + name.size(), holder.pid);
        if (error != std::errc() || *end != '\0') {
            continue;
        }
        const int failed = scan.look(name, holder);
        if (failed == EACCES || failed == EPERM) {
            ++refused;
        } else if (failed == 0 && holder.holds()) {
            holders.push_back(std::move(holder));
        }
    }
    std::sort(
        holders.begin(), holders.end(),
        [](const holder_info& left, const holder_info& right) { return left.pid < right.pid; });
    if (refused != 0 || hidden) {
        missing.push_back({"processes of others that use nodes, regions or dma-bufs",
                           hidden ? "/proc hides them"
                                  : std::to_string(refused) + " processes may not be looked at",
                           "run hcamemctl as root"});
    }
    return holders;
}

} // namespace ctl
