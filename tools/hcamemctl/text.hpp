// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Sizes, shares and names as people read and write them.
#ifndef HCAMEMCTL_TEXT_HPP
#define HCAMEMCTL_TEXT_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ctl {

/// "512", "4K", "1.5M": powers of 1024, at most one decimal, cut off, never rounded up.
std::string human_size(std::uint64_t bytes);

/// "1.2%"; "" of nothing.
std::string human_share(std::uint64_t part, std::uint64_t whole);

/// "42s", "5m", "3h", "2d".
std::string human_age(std::uint64_t seconds);

/// A size such as 4096, 512M, 1.5G, 4GiB, or 50% of a whole, rounded down to
/// whole pages. Nothing if it is no size, is negative or does not fit.
std::optional<std::uint64_t> parse_size(std::string_view text, std::uint64_t whole);

/// For a terminal: everything but printable ASCII becomes \xNN, and \ becomes \\.
std::string printable(std::string_view text);

} // namespace ctl

#endif
