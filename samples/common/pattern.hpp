// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The bytes that messages carry. Each byte depends on its offset and on the message it belongs to,
// so that a byte left over from an earlier message, or one that lies at a wrong offset, is seen.
#ifndef SAMPLES_COMMON_PATTERN_HPP
#define SAMPLES_COMMON_PATTERN_HPP

#include <cstddef>
#include <cstdint>
#include <span>

namespace samples {

/// Which message: its number, and who sent it. Messages of one sender differ in every byte from
/// its 255 messages before and after.
struct message_id {
    std::uint64_t number;
    std::uint8_t sender;
};

/// `first_offset`: the offset of bytes[0] within the pattern.
void fill_pattern(std::span<std::byte> bytes, message_id message, std::size_t first_offset = 0);

struct comparison {
    std::uint64_t wrong_bytes = 0;
    std::size_t first_wrong = 0; // index in `bytes`; valid if wrong_bytes > 0
};

/// Compares every byte.
[[nodiscard]] comparison compare_pattern(std::span<const std::byte> bytes, message_id message,
                                         std::size_t first_offset = 0);

} // namespace samples

#endif
