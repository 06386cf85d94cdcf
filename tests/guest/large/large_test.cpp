// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Lengths and offsets that do not fit into 32 bits. Needs a guest with more memory than the
// others have.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "../driver/kinds.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

class Large : public MappingModes {};
INSTANTIATE_TEST_SUITE_P(, Large, both_mappings, mapping_name);

/// Where a truncated length or offset would show.
std::vector<std::size_t> landmarks(std::size_t size) {
    std::vector<std::size_t> at;
    for (std::size_t mark = GiB; mark < size; mark += GiB) {
        at.insert(at.end(), {mark - 1, mark});
    }
    at.insert(at.end(), {0, size - 1});
    return at;
}

unsigned char value_at(std::size_t offset) {
    return static_cast<unsigned char>(offset / (GiB / 2) * 7 + offset % 2 * 100 + 3);
}

void expect_usable(const Node& node, std::size_t size, RegionKind kind) {
    const Region region(node, size, kind);
    EXPECT_EQ(node.total(), size);
    for (const std::size_t at : landmarks(size)) {
        EXPECT_EQ(region.data()[at], 0) << at;
        region.data()[at] = value_at(at);
    }
    const UniqueFd dma_buf = node.export_range(region.data(), size);
    EXPECT_EQ(lseek(dma_buf.get(), 0, SEEK_END), static_cast<off_t>(size));
    for (const std::size_t at : landmarks(size)) {
        EXPECT_EQ(region.data()[at], value_at(at)) << at;
        const std::size_t page = at / page_size * page_size;
        void* seen = mmap(nullptr, page_size, PROT_READ, MAP_SHARED, dma_buf.get(),
                          static_cast<off_t>(page));
        ASSERT_NE(seen, MAP_FAILED) << at;
        EXPECT_EQ(static_cast<unsigned char*>(seen)[at - page], value_at(at)) << at;
        munmap(seen, page_size);
    }
}

} // namespace

TEST_P(Large, four_gibibytes_and_more_up_to_what_there_is) {
    const ModuleParameter cap("max_bytes", std::uint64_t{1} << 50);
    const Node node;
    const std::uint64_t reserve = node.info().reserve_bytes;
    std::size_t largest = 0;
    for (const std::size_t size : {4 * GiB + page_size, 8 * GiB, 64 * GiB, 4096 * GiB}) {
        // Between these two it depends on who else uses the machine.
        if (size + reserve + 128 * MiB < meminfo("MemAvailable")) {
            expect_usable(node, size, kind());
            largest = size;
        } else {
            ASSERT_GT(size + reserve, meminfo("MemFree")) << "choose another --memory";
            EXPECT_EQ(Region::attempt(node, size, kind()), ENOMEM) << size;
        }
        ASSERT_TRUE(eventually([&] { return node.total() == 0; }));
    }
    EXPECT_GT(largest, 4 * GiB) << "this guest is too small for the test";
}
