// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "regions.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <sstream>

#include "failure.hpp"
#include "files.hpp"

namespace ctl {

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
const std::string path = "/sys/kernel/debug/hcamem/regions";

/// seq_escape_mem() of the kernel: a backslash and three octal digits.
std::string unescape(std::string_view text) {
    std::string plain;
    while (!text.empty()) {
        const bool escaped = text[0] == '\\' && text.size() >= 4;
        const auto code = escaped ? parse_number(text.substr(1, 3), 8) : std::nullopt;
        plain += code ? static_cast<char>(*code) : text[0];
        text.remove_prefix(code ? 4 : 1);
    }
    return plain;
}

/// "4194304x16 65536x3"
std::vector<chunk_run> parse_chunks(const std::string& text) {
    std::vector<chunk_run> chunks;
    std::istringstream words(text);
    chunk_run run;
    for (char cross = 0; words >> run.bytes >> cross >> run.count;) {
        chunks.push_back(run);
    }
    return chunks;
}

/// A line of "name=value"; the last value, chunks, may have blanks. Throws for what is
/// missing, and passes over what is not known.
region_info parse_region(const std::string& line) {
    std::map<std::string, std::string> fields;
    const auto last = line.find(" chunks=");
    std::istringstream words(line.substr(0, last));
    for (std::string word; words >> word;) {
        const auto equals = word.find('=');
        fields[word.substr(0, equals)] = word.substr(equals + 1);
    }
    const auto number = [&fields](const char* name) { return std::stoull(fields.at(name)); };
    region_info region;
    region.id = number("region");
    region.node = fields.at("node");
    region.uid = static_cast<uid_t>(number("uid"));
    region.pid = static_cast<pid_t>(number("pid"));
    region.command = unescape(fields.at("comm"));
    region.created = number("created");
    region.bytes = number("bytes");
    region.charged = number("charged");
    region.mapping = fields.at("mapping");
    region.fork = fields.at("fork");
    region.mappings = number("mappings");
    region.dma_bufs = number("dma_bufs");
    region.chunks = parse_chunks(line.substr(last + std::strlen(" chunks=")));
    return region;
}

/// The module reports the kernel's own pids; other namespaces have other inodes than
/// PROC_PID_INIT_INO.
bool in_first_pid_namespace() {
    constexpr ino_t first = 0xEFFFFFFC;
    struct stat status {};
    return stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == first;
}

} // namespace

const char* to_string(creator_state creator) {
    return creator == creator_state::alive  ? "alive"
           : creator == creator_state::dead ? "dead"
                                            : "unknown";
}

const char* region_info::state() const {
    if (mappings != 0) {
        return "mapped";
    }
    if (dma_bufs != 0) {
        return "exported";
    }
    return chunks.empty() ? "leftover" : "unmapped";
}

std::uint64_t region_info::age_seconds() const {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    const auto seconds = static_cast<std::uint64_t>(now.tv_sec);
    return seconds - std::min(seconds, created / second_ns);
}

creator_state region_info::creator() const {
    if (!in_first_pid_namespace()) {
        return creator_state::unknown;
    }
    const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat").text;
    // The command may hold anything, but nothing after it holds a parenthesis. What
    // follows are the fields of proc(5) from number 3 on.
    std::istringstream words(stat.substr(stat.rfind(')') + 1));
    std::vector<std::string> fields(3);
    for (std::string word; words >> word;) {
        fields.push_back(word);
    }
    if (fields.size() <= 22) {
        return creator_state::dead;
    }
    const auto ticks = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
    const std::uint64_t started = std::stoull(fields[22]) * (second_ns / ticks);
    // A dead main thread may still have living company.
    const bool ended = (fields[3] == "Z" || fields[3] == "X") && std::stoull(fields[20]) <= 1;
    // Two processes cannot have had the pid at once: one that was there when the
    // region was obtained is the one that obtained it.
    return ended || started > created ? creator_state::dead : creator_state::alive;
}

std::optional<std::vector<region_info>> read_regions(std::vector<std::string>& missing) {
    const file_text file = read_file(path);
    if (file.error != 0) {
        missing.push_back("the regions and who obtained them: " + path + ": " +
                          std::strerror(file.error) +
                          (file.error == ENOENT ? "; mount it, as root, with "
                                                  "'mount -t debugfs none /sys/kernel/debug'"
                                                : "; run hcamemctl as root"));
        return std::nullopt;
    }
    std::vector<region_info> regions;
    for (const std::string_view line : lines_of(file.text)) {
        try {
            regions.push_back(parse_region(std::string(line)));
        } catch (const std::logic_error&) {
            throw failure(exit_code::failed,
                          path + " is not understood; is the loaded module of the same version?");
        }
    }
    return regions;
}

} // namespace ctl
