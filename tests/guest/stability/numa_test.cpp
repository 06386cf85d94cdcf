// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A guest with two NUMA nodes, movable memory and a DIMM that comes and goes.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "frames.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

const std::filesystem::path memory = "/sys/devices/system/memory";

std::string word(const std::filesystem::path& file) {
    auto text = read_text(file);
    return text.substr(0, text.find_first_of(" \n"));
}

std::uint64_t block_pages() {
    return std::stoull(word(memory / "block_size_bytes"), nullptr, 16) / page_size;
}

/// The folders of all memory blocks.
std::set<std::filesystem::path> blocks() {
    std::set<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(memory)) {
        if (entry.path().filename().string().starts_with("memory")) {
            all.insert(entry.path());
        }
    }
    return all;
}

/// 0 or the errno of changing a block's state.
int set_state(const std::filesystem::path& block, const char* state) {
    FILE* file = std::fopen((block / "state").c_str(), "w");
    EXPECT_NE(file, nullptr);
    std::fputs(state, file);
    errno = 0;
    return std::fclose(file) == 0 ? 0 : errno;
}

/// Takes a block offline, and back online. Whether it went: a page in the middle of I/O is busy for
/// a moment, and somebody else may have pinned one for longer.
bool goes_offline(const std::filesystem::path& block, int tries) {
    for (; tries > 0; --tries) {
        if (set_state(block, "offline") == 0) {
            EXPECT_EQ(set_state(block, "online_movable"), 0) << block;
            return true;
        }
        usleep(20'000);
    }
    return false;
}

/// Up to four movable blocks that go offline.
std::set<std::filesystem::path> blocks_that_go_offline() {
    std::set<std::filesystem::path> gone;
    for (const auto& block : blocks()) {
        if (gone.size() < 4 && word(block / "state") == "online" &&
            word(block / "valid_zones") == "Movable" && goes_offline(block, 5)) {
            gone.insert(block);
        }
    }
    return gone;
}

class Numa : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        ASSERT_EQ(access("/sys/devices/system/node/node1", F_OK), 0)
            << "this boot has two NUMA nodes";
    }
    const Node node_;
};

} // namespace

TEST_F(Numa, R09_no_page_is_in_movable_memory) {
    std::uint64_t movable = 0;
    for (const auto& block : blocks()) {
        movable += word(block / "state") == "online" && word(block / "valid_zones") == "Movable";
    }
    ASSERT_GT(movable, 0u) << "this boot has movable memory";
    std::vector<Region> regions;
    for (const auto mapping : {HCAMEM_MAPPING_HUGE, HCAMEM_MAPPING_PAGES}) {
        for (int i = 0; i < 3; ++i) {
            regions.emplace_back(node_, 40 * MiB + page_size,
                                 RegionKind{mapping, HCAMEM_FORK_POLICY_ZERO});
        }
    }
    ASSERT_FALSE(frames().empty());
    for (const auto& frame : frames()) {
        EXPECT_NE(frame.zone, "Movable");
    }
}

TEST_F(Numa, R09_movable_blocks_go_offline_while_memory_is_out) {
    // Which of them can go without us: one may hold somebody else's pinned page.
    const auto free_to_go = blocks_that_go_offline();
    ASSERT_GE(free_to_go.size(), 2u);
    std::vector<Region> regions;
    regions.emplace_back(node_, 64 * MiB);
    regions.emplace_back(node_, 64 * MiB, RegionKind{HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_ZERO});
    for (const auto& block : free_to_go) {
        EXPECT_TRUE(goes_offline(block, 500)) << block;
    }
}

TEST_F(Numa, R09_taking_a_block_in_use_offline_fails_and_harms_nothing) {
    Region region(node_, 32 * MiB, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_ZERO});
    fill(region.bytes(), 4);
    const auto before = frames();
    std::set<std::uint64_t> used;
    for (const auto& frame : before) {
        used.insert(frame.frame / block_pages());
    }
    ASSERT_FALSE(used.empty());
    for (const auto block : used) {
        const auto path = memory / ("memory" + std::to_string(block));
        const int error = set_state(path, "offline");
        // EINVAL: the first block has holes, so it cannot go in any case.
        EXPECT_TRUE(error == EBUSY || error == EINVAL) << path << ": " << error;
    }
    EXPECT_EQ(frames(), before);
    EXPECT_TRUE(holds(region.bytes(), 4));
}

TEST_F(Numa, R07_numa_balancing_moves_nothing) {
    write_text("/proc/sys/kernel/numa_balancing", "1");
    std::vector<Region> regions;
    for (const auto mapping : {HCAMEM_MAPPING_HUGE, HCAMEM_MAPPING_PAGES}) {
        regions.emplace_back(node_, 16 * MiB, RegionKind{mapping, HCAMEM_FORK_POLICY_ZERO});
        fill(regions.back().bytes(), 3);
    }
    const auto before = frames();
    // Touched from both nodes' processors for as long as a few scan periods.
    for (int round = 0; round < 6; ++round) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(round % 2, &cpus);
        must(sched_setaffinity(0, sizeof cpus, &cpus), "sched_setaffinity");
        for (const Region& region : regions) {
            EXPECT_TRUE(holds(region.bytes(), 3));
        }
        usleep(500'000);
    }
    EXPECT_EQ(frames(), before);
}

TEST_F(Numa, memory_comes_from_the_node_that_was_asked_for) {
    for (const int wanted : {0, 1}) {
        auto request = create_request(16 * MiB, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_ZERO});
        request.numa_node = wanted;
        ASSERT_EQ(node_.try_create(request), 0);
        for (const auto& frame : frames()) {
            const auto block = "memory" + std::to_string(frame.frame / block_pages());
            const auto home =
                "/sys/devices/system/node/node" + std::to_string(wanted) + "/" + block;
            EXPECT_EQ(access(home.c_str(), F_OK), 0) << frame.frame << " is not on " << wanted;
        }
        void* mapped = mmap(nullptr, request.size, PROT_READ, MAP_SHARED, node_.fd(),
                            static_cast<off_t>(request.offset));
        ASSERT_NE(mapped, MAP_FAILED);
        munmap(mapped, request.size);
    }
}
