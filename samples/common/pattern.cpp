// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "pattern.hpp"

#include <algorithm>
#include <cstring>
#include <endian.h>

namespace samples {
namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);

// Eight bytes of the pattern. The offset is mixed so that no two pages look alike; the message
// enters as one byte repeated, since XOR with another byte then changes all eight.
std::uint64_t pattern_word(std::size_t word, std::uint64_t message_bytes) {
    std::uint64_t mixed = (word + 1) * 0x9e3779b97f4a7c15U;
    mixed ^= mixed >> 29;
    mixed *= 0xbf58476d1ce4e5b9U;
    mixed ^= mixed >> 32;
    return mixed ^ message_bytes;
}

std::uint64_t repeated_message_byte(message_id message) {
    // 37 is odd: 256 messages in a row have 256 different bytes.
    const auto byte = static_cast<std::uint8_t>(message.number * 37 + message.sender);
    return byte * 0x0101010101010101U;
}

// Calls visit(index, length, word) for every piece of [0, size) that lies in one word of the
// pattern; `word` holds the piece in its first `length` bytes as they lie in memory.
template <typename Visit>
void for_each_piece(std::size_t size, message_id message, std::size_t first_offset, Visit visit) {
    const std::uint64_t message_bytes = repeated_message_byte(message);
    std::size_t index = 0;
    while (index < size) {
        const std::size_t offset = first_offset + index;
        const std::size_t skip = offset % word_bytes;
        const std::size_t length = std::min(word_bytes - skip, size - index);
        const std::uint64_t word = pattern_word(offset / word_bytes, message_bytes);
        visit(index, length, htole64(word >> (8 * skip)));
        index += length;
    }
}

} // namespace

void fill_pattern(std::span<std::byte> bytes, message_id message, std::size_t first_offset) {
    for_each_piece(bytes.size(), message, first_offset,
                   [bytes](std::size_t index, std::size_t length, std::uint64_t word) {
                       std::memcpy(bytes.data() + index, &word, length);
                   });
}

comparison compare_pattern(std::span<const std::byte> bytes, message_id message,
                           std::size_t first_offset) {
    comparison result;
    for_each_piece(bytes.size(), message, first_offset,
                   [&](std::size_t index, std::size_t length, std::uint64_t word) {
                       if (std::memcmp(bytes.data() + index, &word, length) == 0) {
                           return;
                       }
                       const auto* expected = reinterpret_cast<const std::byte*>(&word);
                       for (std::size_t i = 0; i < length; ++i) {
                           if (bytes[index + i] == expected[i]) {
                               continue;
                           }
                           if (result.wrong_bytes++ == 0) {
                               result.first_wrong = index + i;
                           }
                       }
                   });
    return result;
}

} // namespace samples
