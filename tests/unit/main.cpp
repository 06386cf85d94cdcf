// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "support/heaps.hpp"

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], unit::helper_option) == 0) {
        return unit::be_helper(std::atoi(argv[2]));
    }
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
