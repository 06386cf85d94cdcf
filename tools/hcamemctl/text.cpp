// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "text.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "files.hpp"

namespace ctl {

namespace {

constexpr std::string_view units = "KMGT";
constexpr std::uint64_t page_size = 4096;
/// Decimals of a size; with more of them the product below would not fit.
constexpr std::size_t max_decimals = 6;

/// "1.25" as 125 of 100ths.
struct decimal {
    std::uint64_t digits = 0;
    std::uint64_t scale = 1;
};

std::optional<decimal> parse_decimal(std::string_view text) {
    const auto point = text.find('.');
    const auto whole = parse_number(text.substr(0, point));
    if (!whole) {
        return std::nullopt;
    }
    if (point == std::string_view::npos) {
        return decimal{*whole, 1};
    }
    const std::string_view decimals = text.substr(point + 1);
    const auto part = parse_number(decimals);
    if (!part || decimals.size() > max_decimals) {
        return std::nullopt;
    }
    std::uint64_t scale = 1;
    for (std::size_t i = 0; i < decimals.size(); ++i) {
        scale *= 10;
    }
    if (*whole > (std::numeric_limits<std::uint64_t>::max() - *part) / scale) {
        return std::nullopt;
    }
    return decimal{*whole * scale + *part, scale};
}

/// number * unit, cut off to a whole number.
std::optional<std::uint64_t> times(const decimal& number, std::uint64_t unit) {
    const std::uint64_t whole = number.digits / number.scale;
    const std::uint64_t rest = number.digits % number.scale;
    const std::uint64_t part =
        unit / number.scale * rest + unit % number.scale * rest / number.scale;
    if (unit != 0 && whole > (std::numeric_limits<std::uint64_t>::max() - part) / unit) {
        return std::nullopt;
    }
    return whole * unit + part;
}

/// Takes a unit off the end of the text: 1 if there is none.
std::uint64_t take_unit(std::string_view& text) {
    std::string_view rest = text;
    if (rest.ends_with("iB")) {
        rest.remove_suffix(2);
    }
    const auto unit = rest.empty() ? std::string_view::npos : units.find(rest.back());
    if (unit == std::string_view::npos) {
        return 1;
    }
    text = rest.substr(0, rest.size() - 1);
    return std::uint64_t{1} << (10 * (unit + 1));
}

} // namespace

std::string human_size(std::uint64_t bytes) {
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

std::string human_share(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) {
        return {};
    }
    const auto tenths = static_cast<std::uint64_t>(
        std::llround(static_cast<double>(part) / static_cast<double>(whole) * 1000));
    return std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) + '%';
}

std::string human_age(std::uint64_t seconds) {
    struct time_unit {
        std::uint64_t seconds;
        char name;
    };
    for (const time_unit unit :
         std::array{time_unit{86400, 'd'}, time_unit{3600, 'h'}, time_unit{60, 'm'}}) {
        if (seconds >= unit.seconds) {
            return std::to_string(seconds / unit.seconds) + unit.name;
        }
    }
    return std::to_string(seconds) + 's';
}

std::optional<std::uint64_t> parse_size(std::string_view text, std::uint64_t whole) {
    if (text.ends_with('%')) {
        text.remove_suffix(1);
        auto percent = parse_decimal(text);
        if (!percent) {
            return std::nullopt;
        }
        percent->scale *= 100;
        const auto bytes = times(*percent, whole);
        return bytes ? std::optional(*bytes / page_size * page_size) : std::nullopt;
    }
    const std::uint64_t unit = take_unit(text);
    const auto number = parse_decimal(text);
    if (!number || (unit == 1 && number->scale != 1)) {
        return std::nullopt;
    }
    return times(*number, unit);
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

} // namespace ctl
