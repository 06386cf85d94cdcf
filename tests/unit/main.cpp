// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <cstdlib>

#include <gtest/gtest.h>

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    // What the caller's environment says must not change what is tested.
    for (const char* name :
         {"HCAMEM_SOURCE", "HCAMEM_MAPPING", "HCAMEM_FORK", "HCAMEM_NUMA_NODE", "HCAMEM_INITIAL",
          "HCAMEM_GROWTH", "HCAMEM_MAXIMUM", "HCAMEM_HCA", "HCAMEM_REGISTER", "HCAMEM_PREFAULT",
          "HCAMEM_ON_MISUSE", "HCAMEM_QUIET"}) {
        unsetenv(name);
    }
    return RUN_ALL_TESTS();
}
