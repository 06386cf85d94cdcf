// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The pin is physical: whatever the kernel does to reclaim, move or defragment memory, the
// page frames of a region and the bytes in them stay.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "frames.hpp"
#include "hog.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"
#include "support/rdma.hpp"

using namespace support;

namespace {

#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif

constexpr std::uint64_t nearly_nothing = 64 * MiB;

class Pin : public testing::Test {
  protected:
    Pin() {
        for (const auto mapping : {HCAMEM_MAPPING_HUGE, HCAMEM_MAPPING_PAGES}) {
            regions_.emplace_back(node_, 48 * MiB + 5 * page_size,
                                  RegionKind{mapping, HCAMEM_FORK_POLICY_ZERO});
            fill(regions_.back().bytes(), static_cast<unsigned>(regions_.size()));
        }
        before_ = frames();
        EXPECT_GE(before_.size(), 2u) << "debugfs lists the frames of both";
    }

    void expect_unchanged(const char* after) const {
        EXPECT_EQ(frames(), before_) << after;
        for (std::size_t i = 0; i < regions_.size(); ++i) {
            EXPECT_TRUE(holds(regions_[i].bytes(), static_cast<unsigned>(i + 1))) << after;
        }
    }

    const Node node_;
    std::vector<Region> regions_;
    std::vector<Frame> before_;
};

/// Pages the kernel swapped out since boot.
std::uint64_t swapped_out() {
    const auto text = read_text("/proc/vmstat");
    const auto at = text.find("\npswpout ");
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + 9));
}

} // namespace

TEST_F(Pin, R07_frames_and_bytes_stay_under_swap_and_compaction) {
    ASSERT_GT(meminfo("SwapTotal"), 0u) << "this boot has a swap disk";
    const auto swapped = swapped_out();
    const auto hog = full_hog(nearly_nothing);
    EXPECT_GT(swapped_out(), swapped) << "the kernel had to swap";
    expect_unchanged("with RAM and swap full");
    write_text("/proc/sys/vm/compact_memory", "1");
    expect_unchanged("after compaction under pressure");
    hog->end();
    write_text("/proc/sys/vm/drop_caches", "3");
    write_text("/proc/sys/vm/compact_memory", "1");
    expect_unchanged("after compaction");
}

TEST_F(Pin, R07_frames_and_bytes_stay_under_madvise_and_move_pages) {
    for (const Region& region : regions_) {
        for (const int advice : {MADV_PAGEOUT, MADV_COLD, MADV_DONTNEED}) {
            // Whether the kernel takes the advice is its own matter.
            (void)madvise(region.data(), region.size(), advice);
        }
        std::vector<void*> pages;
        for (std::size_t at = 0; at < region.size(); at += page_size) {
            pages.push_back(region.data() + at);
        }
        const int other_node =
            meminfo("MemTotal") != 0 && access("/sys/devices/system/node/node1", F_OK) == 0;
        std::vector<int> nodes(pages.size(), other_node);
        std::vector<int> status(pages.size(), 0);
        constexpr int move_all = 1 << 2; // MPOL_MF_MOVE_ALL
        (void)syscall(SYS_move_pages, 0, pages.size(), pages.data(), nodes.data(), status.data(),
                      move_all);
        unsigned long from = 1;
        unsigned long to = other_node ? 2 : 1;
        (void)syscall(SYS_migrate_pages, 0, 8, &from, &to);
    }
    expect_unchanged("after madvise, move_pages and migrate_pages");
}

// Fill with D, exhaust memory, transfer, compare.
TEST_F(Pin, R08_transfers_under_exhaustion_do_not_corrupt) {
    const Context context;
    const Pd pd(context);
    const Region source(node_, 8 * MiB);
    const Region target(node_, 8 * MiB);
    const Mr source_mr = Mr::of_region(pd, node_, source.data(), source.size());
    const Mr target_mr = Mr::of_region(pd, node_, target.data(), target.size());
    const Loopback link(context, pd);
    constexpr std::uint32_t length = 64 * KiB;

    auto hog = full_hog(nearly_nothing);
    for (unsigned round = 0; round < 20; ++round) {
        const std::size_t at = (round * 97 * page_size + round) % (source.size() - length);
        fill(source.bytes(), 100 + round);
        fill(target.bytes(), 200 + round);
        if (!hog->churn()) {
            // Memory was so exhausted that the OOM killer took it.
            hog = full_hog(nearly_nothing);
        }
        EXPECT_EQ(link.write({source.data() + at, length, &source_mr},
                             {target.data() + at, length, &target_mr}),
                  IBV_WC_SUCCESS);
        EXPECT_TRUE(holds({target.data() + at, length}, 100 + round, at)) << "round " << round;
        EXPECT_TRUE(holds({target.data(), at}, 200 + round)) << "round " << round;
        EXPECT_TRUE(holds(source.bytes(), 100 + round)) << "round " << round;
    }
}
