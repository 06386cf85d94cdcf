// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
    // What a test said before it crashed is worth reading.
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    testing::InitGoogleTest(&argc, argv);
    // These tests remove HCAs, unload modules and fill memory.
    if (!GTEST_FLAG_GET(list_tests) && std::getenv("HCAMEM_GUEST") == nullptr) {
        std::fprintf(stderr, "%s runs only in the guest: see tests/runner/guest\n", argv[0]);
        return 2;
    }
    return RUN_ALL_TESTS();
}
