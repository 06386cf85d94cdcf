// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The bytes that the samples compare must show every mistake that a transfer can make.
#include "../../samples/common/pattern.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using samples::compare_pattern;
using samples::fill_pattern;
using samples::message_id;

std::vector<std::byte> filled(std::size_t size, message_id message, std::size_t offset = 0) {
    std::vector<std::byte> bytes(size);
    fill_pattern(bytes, message, offset);
    return bytes;
}

TEST(HostPattern, what_was_filled_compares_equal_at_every_size_and_offset) {
    for (std::size_t size = 0; size < 40; ++size) {
        for (std::size_t offset = 0; offset < 20; ++offset) {
            EXPECT_EQ(compare_pattern(filled(size, {3, 128}, offset), {3, 128}, offset).wrong_bytes,
                      0U);
        }
    }
}

TEST(HostPattern, a_part_holds_the_same_bytes_as_the_whole) {
    const auto whole = filled(100, {5, 0});
    for (std::size_t offset = 0; offset < 30; ++offset) {
        const auto part = filled(50, {5, 0}, offset);
        EXPECT_TRUE(
            std::equal(part.begin(), part.end(), whole.begin() + static_cast<long>(offset)));
    }
}

TEST(HostPattern, every_byte_of_a_stale_message_is_wrong) {
    const auto now = filled(10001, {1000, 0});
    for (std::uint64_t age = 1; age < 256; ++age) {
        EXPECT_EQ(compare_pattern(now, {1000 - age, 0}).wrong_bytes, now.size()) << age;
    }
}

TEST(HostPattern, every_byte_of_ones_own_message_is_wrong) {
    const auto own = filled(1000, {7, 0});
    EXPECT_EQ(compare_pattern(own, {7, 128}).wrong_bytes, own.size());
}

TEST(HostPattern, one_changed_byte_is_found_where_it_is) {
    auto bytes = filled(1003, {9, 128}, 5);
    for (const std::size_t index : {0U, 1U, 2U, 3U, 500U, 1001U, 1002U}) {
        bytes[index] ^= std::byte{0x10};
        const auto found = compare_pattern(bytes, {9, 128}, 5);
        EXPECT_EQ(found.wrong_bytes, 1U);
        EXPECT_EQ(found.first_wrong, index);
        bytes[index] ^= std::byte{0x10};
    }
}

TEST(HostPattern, pages_that_changed_places_are_found) {
    constexpr std::size_t page = 4096;
    for (std::size_t distance = 1; distance < 64; ++distance) {
        const auto moved = filled(page, {1, 0}, distance * page);
        EXPECT_GT(compare_pattern(moved, {1, 0}).wrong_bytes, page * 9 / 10) << distance;
    }
}

} // namespace
