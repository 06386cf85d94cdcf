// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What people read: sizes, tables, and names that are safe for a terminal.
#ifndef HCAMEMCTL_TEXT_HPP
#define HCAMEMCTL_TEXT_HPP

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ctl {

/// "512", "4K", "1.5M": powers of 1024, at most one decimal, cut off, never rounded up.
std::string human_size(std::uint64_t bytes);

/// "42s", "5m", "3h", "2d".
std::string human_age(std::uint64_t seconds);

/// Everything but printable ASCII becomes \xNN, and \ becomes \\.
std::string printable(std::string_view text);

/// Name of a user; the number if it has none.
std::string user_name(uid_t uid);

/// Aligned columns, a line for each row of cells, the first being the titles. A title
/// that begins with ">" aligns its column to the right. An empty cell is shown as "-".
std::string table_text(std::vector<std::vector<std::string>> rows);

/// To stdout, at once; throws failure if it cannot be written.
void print(const std::string& text);

/// A line on stderr that begins with the program's name.
void say(const std::string& text);

} // namespace ctl

#endif
