// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <gtest/gtest.h>

#include "heap/size_class.h"

namespace {

using namespace hcamem::core;

TEST(SizeClass, holds_every_size_and_the_class_below_does_not) {
    for (std::size_t bytes = 1; bytes <= largest_class_bytes; bytes += bytes < 4096 ? 1 : 61) {
        const std::size_t index = class_of(bytes);
        ASSERT_LT(index, class_count);
        ASSERT_GE(size_classes[index].bytes, bytes);
        if (index > 0) {
            ASSERT_LT(size_classes[index - 1].bytes, bytes);
        }
    }
}

TEST(SizeClass, a_size_rounded_up_to_an_alignment_is_in_a_class_that_is_a_multiple_of_it) {
    for (std::size_t align = min_align; align <= page_bytes; align *= 2) {
        for (std::size_t bytes = align; bytes <= largest_class_bytes; bytes += align) {
            ASSERT_EQ(size_classes[class_of(bytes)].bytes % align, 0U) << bytes << " " << align;
        }
    }
}

TEST(SizeClass, spans_waste_at_most_a_64th) {
    for (const size_class& each : size_classes) {
        const std::size_t span = each.span_pages * page_bytes;
        EXPECT_LE((span - std::size_t{each.capacity} * each.bytes) * 64, span) << each.bytes;
    }
}

} // namespace
