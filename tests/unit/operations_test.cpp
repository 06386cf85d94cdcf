// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Random sequences of all operations; `make fuzz-pool` has a fuzzer choose them.
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/operations.hpp"

namespace {

TEST(Operations, in_any_order_keep_all_promises) {
    for (unsigned seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        std::vector<std::uint8_t> bytes(50 + random() % 2000);
        for (std::uint8_t& byte : bytes) {
            byte = static_cast<std::uint8_t>(random());
        }
        unit::run_operations(bytes);
    }
}

} // namespace
