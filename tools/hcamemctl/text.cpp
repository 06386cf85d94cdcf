// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "text.hpp"

#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "failure.hpp"

namespace ctl {

std::string human_size(std::uint64_t bytes) {
    constexpr std::string_view units = "KMGT";
    std::size_t unit = 0;
    std::uint64_t size = 1;
    while (unit < units.size() && bytes / size >= 1024) {
        size *= 1024;
        ++unit;
    }
    std::string text = std::to_string(bytes / size);
    if (const std::uint64_t rest = bytes % size; rest != 0) {
        text += '.';
        text += std::to_string(rest * 10 / size);
    }
    return unit == 0 ? text : text + units[unit - 1];
}

std::string human_age(std::uint64_t seconds) {
    for (const auto& [length, name] : {std::pair(86400U, 'd'), {3600U, 'h'}, {60U, 'm'}}) {
        if (seconds >= length) {
            return std::to_string(seconds / length) + name;
        }
    }
    return std::to_string(seconds) + 's';
}

std::string printable(std::string_view text) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string safe;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\\') {
            safe += "\\\\";
        } else if (byte >= 0x20 && byte < 0x7f) {
            safe += c;
        } else {
            safe += "\\x";
            safe += hex[byte >> 4];
            safe += hex[byte & 15];
        }
    }
    return safe;
}

std::string user_name(uid_t uid) {
    const passwd* const entry = getpwuid(uid);
    return entry != nullptr ? printable(entry->pw_name) : std::to_string(uid);
}

std::string table_text(std::vector<std::vector<std::string>> rows) {
    std::vector<bool> to_the_right;
    for (std::string& title : rows.at(0)) {
        to_the_right.push_back(title.starts_with('>'));
        title.erase(0, to_the_right.back() ? 1 : 0);
    }
    std::vector<std::size_t> widths(to_the_right.size());
    for (auto& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            row[i] = row[i].empty() ? "-" : row[i];
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::string gap(widths[i] - row[i].size(), ' ');
            line += (i == 0 ? "" : "  ") + (to_the_right[i] ? gap + row[i] : row[i] + gap);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    return text;
}

void print(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout)) {
        throw failure(exit_code::failed, std::string("cannot write: ") + std::strerror(errno));
    }
}

void say(const std::string& text) {
    std::fprintf(stderr, "hcamemctl: %s\n", text.c_str());
}

} // namespace ctl
