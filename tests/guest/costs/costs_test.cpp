// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What 64 MiB cost the kernel, as bench/guest counts it, in a guest that was just booted.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "candidates/candidate.hpp"
#include "registration/measure.hpp"
#include "support/guest.hpp"
#include "support/rdma.hpp"

using namespace support;

namespace {

constexpr std::size_t bytes = 64 * MiB;
constexpr std::uint64_t pages = bytes / page_size;
constexpr std::uint64_t huge_pages = bytes / huge_size;

/// One of the benchmark's candidates and what it was seen to cost.
class Costs : public testing::Test {
  public:
    static void SetUpTestSuite() { guest_ = std::make_unique<Guest>(); }
    static void TearDownTestSuite() { guest_.reset(); }

  protected:
    static bench::counts of(const std::string& name) {
        for (const auto& who : guest_->candidates) {
            if (who->name() == name) {
                who->prepare(bytes);
                const bench::counts seen = guest_->probes.measure(*who, bytes);
                who->finish();
                return seen;
            }
        }
        throw std::runtime_error("no candidate " + name);
    }

  private:
    struct Guest {
        Context context;
        Pd pd{context};
        bench::candidates candidates = bench::make_candidates(pd, "rxe0");
        bench::probes probes;
    };
    static inline std::unique_ptr<Guest> guest_;
};

// First, in a guest whose memory nobody has cut into pieces.
TEST_F(Costs, memory_just_obtained_has_few_dma_segments) {
    const bench::counts seen = of("hcamem, huge + dma-buf");
    EXPECT_GT(seen.dma_segments, 0U);
    EXPECT_LE(seen.dma_segments, 32U);
}

TEST_F(Costs, a_huge_region_is_faulted_in_and_mapped_as_hugetlbfs_is) {
    const bench::counts ours = of("hcamem, huge + dma-buf");
    const bench::counts hugetlb = of("hugetlbfs 2 MiB + ibv_reg_mr");
    EXPECT_EQ(ours.faults, huge_pages);
    EXPECT_EQ(ours.faults, hugetlb.faults);
    // 2 MiB entries lie in one such page per GiB of addresses, or two.
    EXPECT_LE(ours.page_table_bytes, 2 * page_size);
    EXPECT_LE(hugetlb.page_table_bytes, 2 * page_size);
    const bench::counts small = of("malloc, 4 KiB pages + ibv_reg_mr");
    EXPECT_EQ(small.faults, pages) << "the count does not fire";
    EXPECT_GE(small.page_table_bytes, huge_pages * page_size);
}

TEST_F(Costs, a_huge_region_is_zeroed_once_and_nothing_else_is) {
    const bench::counts seen = of("hcamem, huge + dma-buf");
    EXPECT_GE(seen.cleared_pages, pages);
    EXPECT_LT(seen.cleared_pages, pages + huge_pages) << "page tables that nothing is mapped by";
}

TEST_F(Costs, R02_registration_pins_no_page_by_its_address) {
    EXPECT_EQ(of("hcamem, huge + dma-buf").pinned_pages, 0U);
    EXPECT_EQ(of("malloc, 4 KiB pages + ibv_reg_mr").pinned_pages, pages)
        << "the probe does not fire";
}

TEST_F(Costs, a_block_of_a_pool_costs_the_kernel_nothing) {
    const bench::counts seen = of("hcamem pool");
    EXPECT_EQ(seen.faults, 0U);
    EXPECT_EQ(seen.cleared_pages, 0U);
    EXPECT_EQ(seen.page_table_bytes, 0U);
    EXPECT_EQ(seen.pinned_pages, 0U);
    EXPECT_EQ(seen.dma_segments, 0U);
}

} // namespace
