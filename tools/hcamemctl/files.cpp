// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "files.hpp"

#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <filesystem>

namespace ctl {

namespace {

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\n");
    const auto last = text.find_last_not_of(" \t\n");
    return first == std::string_view::npos ? "" : text.substr(first, last - first + 1);
}

} // namespace

file_text read_file(const std::string& path) {
    const unique_fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    file_text file;
    char part[16384];
    ssize_t got = fd ? 1 : -1;
    while (got > 0) {
        got = read(fd.get(), part, sizeof part);
        file.text.append(part, got > 0 ? static_cast<std::size_t>(got) : 0);
    }
    return got < 0 ? file_text{{}, errno} : file;
}

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
         at.increment(error)) {
        names.push_back(at->path().filename());
    }
    return names;
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const auto end = text.find('\n');
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

std::string_view field(std::string_view text, std::string_view name) {
    for (const std::string_view line : lines_of(text)) {
        if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
            return trimmed(line.substr(name.size() + 1));
        }
    }
    return {};
}

std::optional<std::uint64_t> parse_number(std::string_view text, int base) {
    text = trimmed(text);
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, base);
    if (error != std::errc() || stop != end) {
        return std::nullopt;
    }
    return value;
}

} // namespace ctl
