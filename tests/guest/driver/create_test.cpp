// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// How regions come into being and go away.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <set>
#include <vector>

#include "kinds.hpp"
#include "support/child.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

class Create : public MappingModes {};
INSTANTIATE_TEST_SUITE_P(, Create, both_mappings, mapping_name);

} // namespace

TEST_P(Create, gives_zeroed_memory_that_keeps_what_is_written) {
    const Node node;
    const Region region(node, 5 * MiB + 3 * page_size, kind());
    EXPECT_TRUE(all_equal(region.bytes(), 0));
    fill(region.bytes(), 1);
    EXPECT_TRUE(holds(region.bytes(), 1));
}

TEST_P(Create, never_shows_what_the_memory_held_before) {
    const Node node;
    const std::size_t size = 8 * MiB;
    for (int round = 0; round < 3; ++round) {
        const Region region(node, size, kind());
        ASSERT_TRUE(all_equal(region.bytes(), 0)) << "round " << round;
        std::fill(region.bytes().begin(), region.bytes().end(), static_cast<unsigned char>(0xa5));
    }
}

TEST_P(Create, rounds_up_to_whole_pages_and_charges_those) {
    const Node node;
    const std::uint64_t before = node.total();
    for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{page_size - 1},
                                     std::uint64_t{page_size}, std::uint64_t{page_size + 1},
                                     std::uint64_t{huge_size - 1}, std::uint64_t{huge_size + 1}}) {
        Node own;
        hcamem_create request = create_request(size, kind());
        ASSERT_EQ(own.try_create(request), 0) << size;
        EXPECT_EQ(request.size, (size + page_size - 1) / page_size * page_size);
        EXPECT_EQ(node.total() - before, request.size);
        own.close();
        EXPECT_TRUE(eventually([&] { return node.total() == before; })) << size;
    }
}

TEST_P(Create, region_is_mapped_once) {
    const Node node;
    hcamem_create request = create_request(huge_size, kind());
    ASSERT_EQ(node.try_create(request), 0);
    const auto offset = static_cast<off_t>(request.offset);
    EXPECT_NE(offset, 0) << "offset 0 is the bare mmap()";
    void* first = mmap(nullptr, huge_size, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(), offset);
    ASSERT_NE(first, MAP_FAILED);
    EXPECT_EQ(mmap(nullptr, huge_size, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(), offset),
              MAP_FAILED);
    EXPECT_EQ(errno, ENXIO);
    munmap(first, huge_size);
    EXPECT_EQ(mmap(nullptr, huge_size, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(), offset),
              MAP_FAILED);
    EXPECT_EQ(errno, ENXIO);
}

TEST_P(Create, unmapped_region_goes_with_the_file) {
    const Node watch;
    const std::uint64_t before = watch.total();
    Node node;
    for (int i = 1; i <= 3; ++i) {
        hcamem_create request = create_request(3 * MiB, kind());
        ASSERT_EQ(node.try_create(request), 0);
        EXPECT_EQ(watch.total() - before, static_cast<unsigned>(i) * 3 * MiB);
    }
    node.close();
    EXPECT_TRUE(eventually([&] { return watch.total() == before; }));
}

TEST_P(Create, mapping_outlives_the_file) {
    const Node watch;
    const std::uint64_t before = watch.total();
    Node node;
    Region region(node, 3 * MiB, kind());
    fill(region.bytes(), 2);
    node.close();
    EXPECT_TRUE(holds(region.bytes(), 2));
    EXPECT_EQ(watch.total() - before, 3 * MiB);
    region.unmap();
    EXPECT_TRUE(eventually([&] { return watch.total() == before; }));
}

TEST_P(Create, region_may_be_mapped_by_whoever_was_given_the_file) {
    const Node node;
    const std::uint64_t before = node.total();
    hcamem_create request = create_request(huge_size, kind());
    ASSERT_EQ(node.try_create(request), 0);
    EXPECT_TRUE(succeeds_in_child({}, [&](Channel&) {
        void* mapped = mmap(nullptr, huge_size, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(),
                            static_cast<off_t>(request.offset));
        require(mapped != MAP_FAILED, "mmap in the child");
        const std::span<unsigned char> bytes(static_cast<unsigned char*>(mapped), huge_size);
        require(all_equal(bytes, 0), "zeroed");
        fill(bytes, 3);
        require(holds(bytes, 3), "keeps what is written");
    }));
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

// neighbours' trouble: 4 GiB and large allocations failing, tail pages lost.
TEST_P(Create, sizes_from_one_page_to_a_gibibyte) {
    const Node node;
    const std::uint64_t before = node.total();
    // A 32-bit program has the interface to show, not the memory.
    const std::uint64_t largest = sizeof(void*) == 8 ? GiB : 64 * MiB;
    for (std::uint64_t whole = page_size; whole <= largest; whole *= 4) {
        const auto size = static_cast<std::size_t>(whole);
        const std::size_t odd = size == page_size ? size : size + page_size;
        if (odd + GiB / 4 > meminfo("MemAvailable")) {
            std::printf("no memory for %zu MiB: largest size shown is a quarter\n", odd / MiB);
            ASSERT_GT(size, 64 * MiB) << "this guest is too small for the test";
            break;
        }
        const ModuleParameter cap("max_bytes", 2 * GiB);
        const Region region(node, odd, kind());
        ASSERT_EQ(node.total() - before, odd);
        const std::size_t step = std::max(size / 64, page_size);
        for (std::size_t at = 0; at < odd; at += step) {
            ASSERT_EQ(region.data()[at], 0);
            region.data()[at] = static_cast<unsigned char>(at / step + 1);
        }
        ASSERT_EQ(region.data()[odd - 1], 0);
        region.data()[odd - 1] = 0x77;
        for (std::size_t at = 0; at < odd; at += step) {
            ASSERT_EQ(region.data()[at], static_cast<unsigned char>(at / step + 1));
        }
        EXPECT_EQ(region.data()[odd - 1], 0x77);
    }
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

TEST_P(Create, more_than_the_machine_has_is_refused_cleanly) {
    const Node node;
    const std::uint64_t before = node.total();
    const std::uint64_t available = meminfo("MemAvailable");
    EXPECT_EQ(Region::attempt(node, 2 * meminfo("MemTotal"), kind()), EDQUOT);
    {
        const ModuleParameter cap("max_bytes", std::uint64_t{1} << 60);
        EXPECT_EQ(Region::attempt(node, 2 * meminfo("MemTotal"), kind()), ENOMEM);
        EXPECT_EQ(Region::attempt(node, std::uint64_t{1} << 50, kind()), ENOMEM);
    }
    EXPECT_EQ(node.total(), before);
    EXPECT_TRUE(eventually([&] { return meminfo("MemAvailable") + 64 * MiB > available; }));
}

TEST_P(Create, honours_a_numa_node_and_refuses_one_that_is_not_there) {
    const Node node;
    hcamem_create request = create_request(page_size, kind());
    request.numa_node = 0;
    EXPECT_EQ(node.try_create(request), 0);
    for (const std::int32_t bad : {-2, 1 << 20, INT32_MAX, INT32_MIN}) {
        request = create_request(page_size, kind());
        request.numa_node = bad;
        EXPECT_EQ(node.try_create(request), EINVAL) << bad;
    }
}

TEST(BareMmap, obtains_and_maps_up_to_its_limit) {
    const Node node;
    const std::uint64_t before = node.total();
    for (const std::size_t size :
         {page_size, huge_size + page_size, std::size_t{HCAMEM_BARE_MMAP_MAX}}) {
        void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(), 0);
        ASSERT_NE(mapped, MAP_FAILED) << size;
        auto* bytes = static_cast<unsigned char*>(mapped);
        EXPECT_EQ(bytes[size - 1], 0);
        bytes[size - 1] = 1;
        EXPECT_EQ(node.total() - before, size);
        munmap(mapped, size);
        EXPECT_TRUE(eventually([&] { return node.total() == before; }));
    }
}

TEST(BareMmap, each_call_is_another_region) {
    const Node node;
    std::vector<unsigned char*> maps;
    for (int i = 0; i < 3; ++i) {
        void* mapped = mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(), 0);
        ASSERT_NE(mapped, MAP_FAILED);
        maps.push_back(static_cast<unsigned char*>(mapped));
        maps.back()[0] = static_cast<unsigned char>(i + 1);
    }
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(maps[static_cast<std::size_t>(i)][0], i + 1);
        munmap(maps[static_cast<std::size_t>(i)], page_size);
    }
}

TEST(UnmappedRegions, have_offsets_of_their_own_and_go_with_the_file) {
    const Node watch;
    const std::uint64_t before = watch.total();
    constexpr unsigned count = 500;
    std::set<std::uint64_t> offsets;
    {
        const Node node;
        for (unsigned i = 0; i < count; ++i) {
            hcamem_create request = create_request(page_size);
            ASSERT_EQ(node.try_create(request), 0);
            EXPECT_TRUE(offsets.insert(request.offset).second);
        }
        EXPECT_EQ(watch.total() - before, count * page_size);
    }
    EXPECT_TRUE(eventually([&] { return watch.total() == before; }));
}
