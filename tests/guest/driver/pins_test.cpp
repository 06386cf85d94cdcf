// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// RDMA on our memory makes no call to get_user_pages() or pin_user_pages().
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kinds.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"
#include "support/page_pins.hpp"
#include "support/rdma.hpp"

using namespace support;

namespace {

class Pins : public MappingModes {};
INSTANTIATE_TEST_SUITE_P(, Pins, both_mappings, mapping_name);

AddressRange range_of(const void* data, std::size_t size) {
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    return {begin, begin + size};
}

/// Every operation on two halves of memory that one registration covers.
void use_everything(const Loopback& link, const Mr& mr, unsigned char* data, std::size_t size) {
    const std::size_t half = size / 2;
    const auto length = static_cast<std::uint32_t>(64 * KiB);
    const auto at = [&](std::size_t offset, std::uint32_t bytes) {
        return Place{data + offset, bytes, &mr};
    };
    fill({data, length}, 1);
    link.post_receive(at(half, length));
    ASSERT_EQ(link.send(at(0, length)), IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({data + half, length}, 1));

    fill({data, length}, 2);
    ASSERT_EQ(link.write(at(0, length), at(half + 3, length)), IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({data + half + 3, length}, 2));

    fill({data + half, length}, 3);
    ASSERT_EQ(link.read(at(7, length), at(half, length)), IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({data + 7, length}, 3));

    auto* old = reinterpret_cast<std::uint64_t*>(data + 128 * KiB);
    auto* counter = reinterpret_cast<std::uint64_t*>(data + half + 128 * KiB);
    *counter = 40;
    ASSERT_EQ(link.fetch_add(at(128 * KiB, 8), at(half + 128 * KiB, 8), 2), IBV_WC_SUCCESS);
    EXPECT_EQ(*old, 40U);
    EXPECT_EQ(*counter, 42U);
    ASSERT_EQ(link.compare_swap(at(128 * KiB, 8), at(half + 128 * KiB, 8), 42, 7), IBV_WC_SUCCESS);
    EXPECT_EQ(*old, 42U);
    EXPECT_EQ(*counter, 7U);
}

} // namespace

// And the same probes see the same run on malloc'ed memory, so that "none" means none.
TEST_P(Pins, R02_no_page_is_pinned_from_open_to_close) {
    if (!rxe_imports_dma_bufs()) {
        GTEST_SKIP() << "this soft-RoCE does not import dma-bufs; ibv_reg_mr() pins";
    }
    PagePins pins;
    AddressRange used{};
    {
        const Node node;
        const Context context;
        const Pd pd(context);
        const Region region(node, 2 * huge_size, kind());
        used = range_of(region.data(), region.size());
        const Mr mr = Mr::of_region(pd, node, region.data(), region.size());
        const Loopback link(context, pd);
        use_everything(link, mr, region.data(), region.size());
    }
    for (const PinCall& call : touching(pins.calls(), std::vector{used})) {
        ADD_FAILURE() << call.function << " by " << call.thread << std::hex << " asked for "
                      << call.pages.begin << '-' << call.pages.end;
    }

    const Context context;
    const Pd pd(context);
    std::vector<unsigned char> heap(2 * huge_size);
    pins.clear();
    const Mr mr = Mr::user_pages(pd, heap.data(), heap.size());
    const Loopback link(context, pd);
    use_everything(link, mr, heap.data(), heap.size());
    EXPECT_FALSE(touching(pins.calls(), std::vector{range_of(heap.data(), heap.size())}).empty());
}

TEST(PinProbes, see_ibv_reg_mr_on_our_pages) {
    const PagePins pins;
    const Context context;
    const Pd pd(context);
    const Node node;
    const Region region(node, huge_size);
    const Mr mr = Mr::user_pages(pd, region.data(), region.size());
    EXPECT_FALSE(
        touching(pins.calls(), std::vector{range_of(region.data(), region.size())}).empty());
}
