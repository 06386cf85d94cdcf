// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Tests of the samples as programs: command lines, results, what they say and how they end.
// Suites named Host... need no HCA and run on the host; all others run in the guest.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    const bool in_guest = std::getenv("HCAMEM_GUEST") != nullptr;
    if (GTEST_FLAG_GET(filter) == "*") {
        std::puts(in_guest ? "in the guest: all but the Host suites"
                           : "on the host: the Host suites; the others run in the guest");
        GTEST_FLAG_SET(filter, in_guest ? "-*Host*" : "*Host*");
    }
    return RUN_ALL_TESTS();
}
