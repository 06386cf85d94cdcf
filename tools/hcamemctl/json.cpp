// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "json.hpp"

#include <array>

namespace ctl {

namespace {

/// The well-formed sequences of Unicode, table 3-7: lead bytes, how many bytes
/// follow, and what the first of those may be.
struct utf8_sequence {
    unsigned char first, last;
    std::size_t more;
    unsigned char low, high;
};

constexpr std::array sequences{
    utf8_sequence{0x00, 0x7f, 0, 0x80, 0xbf}, utf8_sequence{0xc2, 0xdf, 1, 0x80, 0xbf},
    utf8_sequence{0xe0, 0xe0, 2, 0xa0, 0xbf}, utf8_sequence{0xe1, 0xec, 2, 0x80, 0xbf},
    utf8_sequence{0xed, 0xed, 2, 0x80, 0x9f}, utf8_sequence{0xee, 0xef, 2, 0x80, 0xbf},
    utf8_sequence{0xf0, 0xf0, 3, 0x90, 0xbf}, utf8_sequence{0xf1, 0xf3, 3, 0x80, 0xbf},
    utf8_sequence{0xf4, 0xf4, 3, 0x80, 0x8f},
};

bool within(unsigned char byte, unsigned char low, unsigned char high) {
    return low <= byte && byte <= high;
}

/// Length of the UTF-8 character at the start of the text; 0 if that is none.
std::size_t utf8_length(std::string_view text) {
    const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    for (const utf8_sequence& sequence : sequences) {
        if (!within(at(0), sequence.first, sequence.last)) {
            continue;
        }
        if (text.size() <= sequence.more) {
            return 0;
        }
        for (std::size_t i = 1; i <= sequence.more; ++i) {
            if (!within(at(i), i == 1 ? sequence.low : 0x80, i == 1 ? sequence.high : 0xbf)) {
                return 0;
            }
        }
        return sequence.more + 1;
    }
    return 0;
}

void append_control(std::string& to, char c) {
    constexpr std::string_view hex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    to += "\\u00";
    to += hex[byte >> 4];
    to += hex[byte & 15];
}

} // namespace

void json_writer::separate() {
    if (!first_) {
        text_ += ',';
    }
    first_ = false;
}

json_writer& json_writer::open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
    return *this;
}

json_writer& json_writer::shut(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
}

json_writer& json_writer::raw(std::string_view text) {
    separate();
    text_ += text;
    return *this;
}

json_writer& json_writer::key(std::string_view name) {
    value(name);
    text_ += ':';
    first_ = true;
    return *this;
}

json_writer& json_writer::value(std::string_view text) {
    separate();
    text_ += '"';
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const char c = text[0];
        if (length == 0) {
            text_ += "\xef\xbf\xbd"; // U+FFFD
        } else if (c == '"' || c == '\\') {
            text_ += '\\';
            text_ += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            append_control(text_, c);
        } else {
            text_ += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    text_ += '"';
    return *this;
}

} // namespace ctl
