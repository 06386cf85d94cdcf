// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "files.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <memory>

namespace ctl {

namespace {

int start_of(int folder) {
    return folder < 0 ? AT_FDCWD : folder;
}

} // namespace

file_text read_file(const std::string& path, int folder) {
    const unique_fd fd(openat(start_of(folder), path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd) {
        return {{}, errno};
    }
    file_text file;
    char part[16384];
    for (;;) {
        const ssize_t got = read(fd.get(), part, sizeof part);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return {{}, errno};
        }
        if (got == 0) {
            return file;
        }
        file.text.append(part, static_cast<std::size_t>(got));
    }
}

int write_file(const std::string& path, std::string_view text) {
    const unique_fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) {
        return errno;
    }
    return write(fd.get(), text.data(), text.size()) < 0 ? errno : 0;
}

int list_folder(const std::string& path, std::vector<std::string>& names, int folder) {
    const int fd = openat(start_of(folder), path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(fdopendir(fd), closedir);
    if (!directory) {
        const int error = errno;
        close(fd);
        return error;
    }
    errno = 0;
    while (const dirent* entry = readdir(directory.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            names.emplace_back(name);
        }
    }
    return errno;
}

void for_each_line(std::string_view text, const std::function<void(std::string_view)>& line) {
    while (!text.empty()) {
        const auto end = text.find('\n');
        line(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
}

std::string_view trimmed(std::string_view text) {
    const auto last = text.find_last_not_of(" \t\n");
    return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::optional<std::uint64_t> parse_number(std::string_view text, int base) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, base);
    if (text.empty() || error != std::errc() || stop != end) {
        return std::nullopt;
    }
    return value;
}

std::optional<std::uint64_t> read_number(const std::string& path) {
    const file_text file = read_file(path);
    return file ? parse_number(trimmed(file.text)) : std::nullopt;
}

} // namespace ctl
