// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_GUEST_INJECT_RACE_HPP
#define TESTS_GUEST_INJECT_RACE_HPP

#include <gtest/gtest.h>

#include "../driver/kinds.hpp"
#include "inject_module.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

/// A region with huge and small chunks.
constexpr std::size_t region_bytes = support::huge_size + 5 * support::page_size;

/// Nothing is held by anybody before, and after.
class NothingHeld : public OnInjectModule<MappingModes> {
  protected:
    void SetUp() override {
        ASSERT_TRUE(support::eventually(nothing_held)) << support::Node().total();
    }
    void TearDown() override {
        EXPECT_TRUE(support::eventually(nothing_held)) << support::Node().total();
    }
    static bool nothing_held() {
        return support::Node().total() == 0 &&
               support::read_number("/sys/class/hcamem/" + *support::Node::name_of("rxe0") +
                                    "/regions") == 0;
    }
};

#endif
