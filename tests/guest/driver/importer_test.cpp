// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What a device driver gets when it imports our dma-bufs.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <tuple>
#include <vector>

#include "guest/importer/importer.hpp"
#include "kinds.hpp"
#include "support/child.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

class Import : public testing::TestWithParam<std::tuple<hcamem_mapping, importer_kind>> {
  protected:
    static RegionKind region_kind() { return {std::get<0>(GetParam()), HCAMEM_FORK_POLICY_ZERO}; }
    static importer_kind importer() { return std::get<1>(GetParam()); }
    const Importer module_;
};

INSTANTIATE_TEST_SUITE_P(
    , Import, testing::Combine(both_mappings, testing::Values(IMPORTER_STATIC, IMPORTER_DYNAMIC)),
    [](const auto& info) {
        return std::string(to_string(std::get<0>(info.param))) +
               (std::get<1>(info.param) == IMPORTER_STATIC ? "_static" : "_dynamic");
    });

} // namespace

TEST_P(Import, table_holds_exactly_the_pages_of_the_range) {
    const Node node;
    const Region region(node, 3 * huge_size + 5 * page_size, region_kind());
    fill(region.bytes(), 1);
    struct Range {
        std::size_t first;
        std::size_t pages;
    };
    for (const Range& range : {Range{0, 1}, Range{1, 3}, Range{510, 4}, Range{512, 512},
                               Range{700, 800}, Range{0, 1541}, Range{1540, 1}}) {
        const std::size_t start = range.first * page_size;
        const std::size_t length = range.pages * page_size;
        const UniqueFd fd = node.export_range(region.data() + start, length);
        Attachment device;
        ASSERT_EQ(device.attach(fd.get(), importer()), 0);
        ASSERT_EQ(device.map(), 0);
        EXPECT_EQ(device.table().cpu_bytes, length);
        EXPECT_EQ(device.table().dma_bytes, length);
        EXPECT_EQ(device.table().moves, 0U) << "the memory never moves";
        std::vector<unsigned char> seen(length);
        ASSERT_EQ(device.read(IMPORTER_TABLE, 0, seen), 0);
        EXPECT_TRUE(holds(seen, 1, start)) << range.first;
        EXPECT_EQ(device.unmap(), 0);
        EXPECT_EQ(device.detach(), 0);
    }
}

TEST_P(Import, device_writes_arrive_in_the_mapping_and_nowhere_else) {
    const Node node;
    const Region region(node, huge_size, region_kind());
    fill(region.bytes(), 1);
    const std::size_t start = 9 * page_size;
    const UniqueFd fd = node.export_range(region.data() + start, 8 * page_size);
    Attachment device;
    ASSERT_EQ(device.attach(fd.get(), importer()), 0);
    ASSERT_EQ(device.map(), 0);
    std::vector<unsigned char> message(2 * page_size + 13);
    fill(message, 2);
    ASSERT_EQ(device.write(IMPORTER_TABLE, 777, message), 0);
    EXPECT_TRUE(holds({region.data(), start + 777}, 1));
    EXPECT_TRUE(holds({region.data() + start + 777, message.size()}, 2));
    const std::size_t after = start + 777 + message.size();
    EXPECT_TRUE(holds({region.data() + after, region.size() - after}, 1, after));
}

TEST_P(Import, kernel_mapping_shows_the_same_bytes) {
    const Node node;
    const Region region(node, 2 * huge_size, region_kind());
    fill(region.bytes(), 1);
    const std::size_t start = 500 * page_size;
    const std::size_t length = 30 * page_size;
    const UniqueFd fd = node.export_range(region.data() + start, length);
    Attachment device;
    ASSERT_EQ(device.attach(fd.get(), importer()), 0);
    ASSERT_EQ(device.vmap(), 0);
    std::vector<unsigned char> seen(length);
    ASSERT_EQ(device.read(IMPORTER_VMAP, 0, seen), 0);
    EXPECT_TRUE(holds(seen, 1, start));
    std::vector<unsigned char> message(page_size + 1, 0x3d);
    ASSERT_EQ(device.write(IMPORTER_VMAP, 12 * page_size - 5, message), 0);
    EXPECT_TRUE(all_equal({region.data() + start + 12 * page_size - 5, message.size()}, 0x3d));
    EXPECT_EQ(region.data()[start + 12 * page_size - 6], seen[12 * page_size - 6]);
    EXPECT_EQ(device.vunmap(), 0);
    EXPECT_EQ(device.detach(), 0);
}

// Importers edit the table they are given: nobody else may see that.
TEST_P(Import, every_mapping_has_a_table_of_its_own) {
    const Node node;
    const Region region(node, huge_size, region_kind());
    const UniqueFd fd = node.export_range(region.data(), region.size());
    Attachment first;
    Attachment second;
    ASSERT_EQ(first.attach(fd.get(), importer()), 0);
    ASSERT_EQ(first.map(), 0);
    ASSERT_EQ(first.trim(), 0);
    EXPECT_EQ(first.table().dma_bytes, region.size() - page_size);
    ASSERT_EQ(second.attach(fd.get(), importer()), 0);
    ASSERT_EQ(second.map(), 0);
    EXPECT_EQ(second.table().dma_bytes, region.size());
    EXPECT_EQ(first.restore(), 0);
    EXPECT_EQ(first.unmap(), 0);
    EXPECT_EQ(second.table().dma_bytes, region.size());
}

TEST_P(Import, memory_outlives_its_creator_while_attached) {
    const Node node;
    const std::uint64_t before = node.total();
    Attachment device;
    Child creator([&](Channel& channel) {
        const Region region(node, huge_size, region_kind());
        fill(region.bytes(), 6);
        channel.send_fd(node.export_range(region.data() + page_size, 4 * page_size).get());
        (void)channel.receive();
    });
    {
        const UniqueFd fd = creator.channel().receive_fd();
        ASSERT_EQ(device.attach(fd.get(), importer()), 0);
        ASSERT_EQ(device.map(), 0);
    }
    creator.kill_now();
    creator.wait();
    EXPECT_EQ(node.total() - before, huge_size);
    std::vector<unsigned char> seen(4 * page_size);
    ASSERT_EQ(device.read(IMPORTER_TABLE, 0, seen), 0);
    EXPECT_TRUE(holds(seen, 6, page_size));
    ASSERT_EQ(device.vmap(), 0) << "also what comes only now";
    ASSERT_EQ(device.read(IMPORTER_VMAP, 0, seen), 0);
    EXPECT_TRUE(holds(seen, 6, page_size));
    EXPECT_EQ(device.vunmap(), 0);
    EXPECT_EQ(device.unmap(), 0);
    EXPECT_EQ(node.total() - before, huge_size) << "attached still";
    EXPECT_EQ(device.detach(), 0);
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

TEST_P(Import, an_importer_may_stop_at_any_step) {
    const Node node;
    const std::uint64_t before = node.total();
    for (int steps = 1; steps <= 4; ++steps) {
        Attachment device;
        {
            const Region region(node, 5 * page_size, region_kind());
            const UniqueFd fd = node.export_range(region.data(), region.size());
            ASSERT_EQ(device.attach(fd.get(), importer()), 0);
        }
        if (steps >= 2) {
            ASSERT_EQ(device.map(), 0);
        }
        if (steps >= 3) {
            ASSERT_EQ(device.vmap(), 0);
        }
        if (steps >= 4) {
            ASSERT_EQ(device.unmap(), 0);
            ASSERT_EQ(device.map(), 0) << "mapping again";
        }
        EXPECT_EQ(node.total() - before, 5 * page_size);
        device.close();
        EXPECT_TRUE(eventually([&] { return node.total() == before; })) << steps;
    }
}

TEST_P(Import, several_at_once_and_the_module_stays) {
    const Node node;
    const std::uint64_t before = node.total();
    std::vector<Attachment> devices(4);
    {
        const Region region(node, huge_size, region_kind());
        fill(region.bytes(), 1);
        for (std::size_t i = 0; i < devices.size(); ++i) {
            const UniqueFd fd = node.export_range(region.data() + i * page_size, 3 * page_size);
            ASSERT_EQ(devices[i].attach(fd.get(), importer()), 0);
            ASSERT_EQ(devices[i].map(), 0);
        }
    }
    for (std::size_t i = 0; i < devices.size(); ++i) {
        std::vector<unsigned char> seen(3 * page_size);
        ASSERT_EQ(devices[i].read(IMPORTER_TABLE, 0, seen), 0);
        EXPECT_TRUE(holds(seen, 1, i * page_size));
        EXPECT_EQ(node.total() - before, huge_size);
        devices[i].close();
    }
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
    EXPECT_EQ(module_.try_attach_map_vmap_detach(-1), EBADF);
}
