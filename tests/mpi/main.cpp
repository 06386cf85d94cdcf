// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <gtest/gtest.h>

#include <filesystem>

#include "support/guest.hpp"

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    support::environment("HCAMEM_GUEST");
    // Soft-RoCE's messages of 4 KiB and its headers must fit, or UCX takes smaller ones.
    for (const char* device : {"v0", "v0peer", "v1", "v1peer"}) {
        support::must_shell(std::string("ip link set ") + device + " mtu 4500");
    }
    // An earlier boot's results may be in the same folder.
    std::filesystem::remove(support::environment("HCAMEM_RESULTS") + "/mpi.jsonl");
    return RUN_ALL_TESTS();
}
