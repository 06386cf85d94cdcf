// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What an application may do with a mapping, piece by piece.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "kinds.hpp"
#include "support/child.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

class Mapping : public MappingModes {};
INSTANTIATE_TEST_SUITE_P(, Mapping, both_mappings, mapping_name);

long minor_faults() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/// Page numbers around every kind of boundary of a region of this many pages.
std::vector<std::size_t> boundaries(std::size_t pages) {
    std::vector<std::size_t> found;
    for (const std::size_t at :
         {1UL, 2UL, 511UL, 512UL, 513UL, 1023UL, 1024UL, 1025UL, 1536UL, pages - 2, pages - 1}) {
        if (at > 0 && at < pages) {
            found.push_back(at);
        }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

/// Writes a mark into every page.
void mark(unsigned char* data, std::size_t from, std::size_t to) {
    for (std::size_t page = from; page < to; ++page) {
        std::memcpy(data + page * page_size + 40, &page, sizeof page);
    }
}

/// First page in the range without its mark, or `to`.
std::size_t first_unmarked(const unsigned char* data, std::size_t from, std::size_t to) {
    for (std::size_t page = from; page < to; ++page) {
        if (std::memcmp(data + page * page_size + 40, &page, sizeof page) != 0) {
            return page;
        }
    }
    return to;
}

/// Whether the kernel can read this byte of ours, write it back, or not.
bool readable(const unsigned char* address) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        throw std::runtime_error("pipe");
    }
    const UniqueFd reader(ends[0]);
    const UniqueFd writer(ends[1]);
    return write(writer.get(), address, 1) == 1;
}

bool writable(unsigned char* address) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        throw std::runtime_error("pipe");
    }
    const UniqueFd reader(ends[0]);
    const UniqueFd writer(ends[1]);
    const unsigned char old = *address;
    return write(writer.get(), &old, 1) == 1 && read(reader.get(), address, 1) == 1;
}

} // namespace

TEST(MappingFaults, huge_mode_takes_few_faults) {
    const Node node;
    const Region region(node, 64 * MiB, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_ZERO});
    const long before = minor_faults();
    for (std::size_t at = 0; at < region.size(); at += page_size) {
        static_cast<volatile unsigned char*>(region.data())[at] = 1;
    }
    EXPECT_LE(minor_faults() - before, 64);
}

TEST(MappingFaults, pages_mode_needs_no_fault_at_all_or_one_per_page) {
    const Node node;
    const Region region(node, 4 * MiB);
    const long before = minor_faults();
    mark(region.data(), 0, region.size() / page_size);
    EXPECT_LE(minor_faults() - before, static_cast<long>(region.size() / page_size));
}

// litex_m2sdr#85: "Bad page map" at munmap; udmabuf#22: tail pages freed.
TEST_P(Mapping, part_of_it_may_be_unmapped_at_any_boundary) {
    const Node node;
    const std::uint64_t before = node.total();
    const std::size_t size = 3 * huge_size + 5 * page_size;
    const std::size_t pages = size / page_size;
    for (const std::size_t at : boundaries(pages)) {
        for (const bool tail : {false, true}) {
            Region region(node, size, kind());
            mark(region.data(), 0, pages);
            unsigned char* cut = region.data() + (tail ? at * page_size : 0);
            const std::size_t length = (tail ? pages - at : at) * page_size;
            ASSERT_EQ(munmap(cut, length), 0);
            const std::size_t from = tail ? 0 : at;
            const std::size_t to = tail ? at : pages;
            ASSERT_EQ(first_unmarked(region.data(), from, to), to) << at << tail;
            EXPECT_FALSE(readable(cut));
            EXPECT_EQ(node.total() - before, size) << "the region lives while a part is mapped";
            region.unmap();
            ASSERT_TRUE(eventually([&] { return node.total() == before; }));
        }
    }
}

TEST_P(Mapping, holes_may_be_cut_before_it_is_touched) {
    const Node node;
    const std::size_t pages = 3 * huge_size / page_size;
    for (const std::size_t at : boundaries(pages)) {
        const Region region(node, pages * page_size, kind());
        ASSERT_EQ(munmap(region.data() + (at - 1) * page_size, page_size), 0);
        mark(region.data(), 0, at - 1);
        mark(region.data(), at, pages);
        ASSERT_EQ(first_unmarked(region.data(), 0, at - 1), at - 1);
        ASSERT_EQ(first_unmarked(region.data(), at, pages), pages);
        EXPECT_FALSE(readable(region.data() + (at - 1) * page_size));
    }
}

TEST_P(Mapping, protection_may_change_at_any_boundary) {
    const Node node;
    const std::size_t size = 3 * huge_size + 5 * page_size;
    const std::size_t pages = size / page_size;
    for (const std::size_t at : boundaries(pages)) {
        const Region region(node, size, kind());
        mark(region.data(), 0, pages);
        unsigned char* page = region.data() + at * page_size;
        ASSERT_EQ(mprotect(page, page_size, PROT_READ), 0);
        EXPECT_TRUE(readable(page));
        EXPECT_FALSE(writable(page));
        EXPECT_TRUE(writable(page - page_size));
        ASSERT_EQ(mprotect(page, page_size, PROT_NONE), 0);
        EXPECT_FALSE(readable(page));
        ASSERT_EQ(mprotect(region.data(), size, PROT_READ | PROT_WRITE), 0);
        EXPECT_TRUE(writable(page));
        ASSERT_EQ(first_unmarked(region.data(), 0, pages), pages) << at;
    }
}

TEST_P(Mapping, a_read_only_mapping_reads_and_can_be_made_writable) {
    const Node node;
    hcamem_create request = create_request(huge_size, kind());
    ASSERT_EQ(node.try_create(request), 0);
    void* mapped = mmap(nullptr, huge_size, PROT_READ, MAP_SHARED, node.fd(),
                        static_cast<off_t>(request.offset));
    ASSERT_NE(mapped, MAP_FAILED);
    auto* data = static_cast<unsigned char*>(mapped);
    EXPECT_EQ(data[page_size], 0);
    EXPECT_FALSE(writable(data + page_size));
    ASSERT_EQ(mprotect(data, huge_size, PROT_READ | PROT_WRITE), 0);
    mark(data, 0, huge_size / page_size);
    EXPECT_EQ(first_unmarked(data, 0, huge_size / page_size), huge_size / page_size);
    munmap(mapped, huge_size);
}

TEST_P(Mapping, it_may_be_moved_to_odd_addresses) {
    const Node node;
    const std::uint64_t before = node.total();
    const std::size_t size = 2 * huge_size + 3 * page_size;
    const std::size_t pages = size / page_size;
    for (const std::size_t shift : {0UL, 1UL, 3UL, 511UL, 512UL, 700UL}) {
        const Region region(node, size, kind());
        mark(region.data(), 0, pages / 2); // the second half is first touched after the move
        void* room =
            mmap(nullptr, size + 2 * huge_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(room, MAP_FAILED);
        auto* target = static_cast<unsigned char*>(room) + shift * page_size;
        ASSERT_EQ(mremap(region.data(), size, size, MREMAP_MAYMOVE | MREMAP_FIXED, target), target);
        ASSERT_EQ(first_unmarked(target, 0, pages / 2), pages / 2) << shift;
        mark(target, pages / 2, pages);
        ASSERT_EQ(first_unmarked(target, 0, pages), pages) << shift;
        EXPECT_FALSE(readable(region.data()));
        EXPECT_EQ(node.total() - before, size);
        munmap(room, size + 2 * huge_size);
        EXPECT_TRUE(eventually([&] { return node.total() == before; }));
    }
}

TEST_P(Mapping, part_of_it_may_be_moved_away) {
    const Node node;
    const std::size_t size = 2 * huge_size;
    const std::size_t pages = size / page_size;
    for (const std::size_t at : boundaries(pages)) {
        const Region region(node, size, kind());
        mark(region.data(), 0, pages);
        void* room = mmap(nullptr, page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(room, MAP_FAILED);
        ASSERT_EQ(mremap(region.data() + at * page_size, page_size, page_size,
                         MREMAP_MAYMOVE | MREMAP_FIXED, room),
                  room);
        std::size_t mark_found = 0;
        std::memcpy(&mark_found, static_cast<unsigned char*>(room) + 40, sizeof mark_found);
        EXPECT_EQ(mark_found, at);
        EXPECT_EQ(first_unmarked(region.data(), 0, at), at);
        EXPECT_EQ(first_unmarked(region.data(), at + 1, pages), pages);
        munmap(room, page_size);
    }
}

TEST_P(Mapping, it_cannot_grow_or_double) {
    const Node node;
    const Region region(node, huge_size, kind());
    EXPECT_EQ(mremap(region.data(), huge_size, 2 * huge_size, MREMAP_MAYMOVE), MAP_FAILED);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(mremap(region.data(), 0, huge_size, MREMAP_MAYMOVE), MAP_FAILED);
    EXPECT_EQ(mremap(region.data(), huge_size, huge_size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP),
              MAP_FAILED);
    // Smaller is a munmap() of the rest.
    mark(region.data(), 0, 512);
    EXPECT_EQ(mremap(region.data(), huge_size, 3 * page_size, 0), region.data());
    EXPECT_EQ(first_unmarked(region.data(), 0, 3), 3U);
    EXPECT_FALSE(readable(region.data() + 3 * page_size));
}

TEST_P(Mapping, it_may_be_laid_over_any_address) {
    const Node node;
    const std::size_t size = huge_size + 7 * page_size;
    const std::size_t pages = size / page_size;
    void* room = mmap(nullptr, size + 2 * huge_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(room, MAP_FAILED);
    for (const std::size_t shift : {0UL, 1UL, 511UL, 512UL}) {
        hcamem_create request = create_request(size, kind());
        ASSERT_EQ(node.try_create(request), 0);
        auto* target = static_cast<unsigned char*>(room) + shift * page_size;
        ASSERT_EQ(mmap(target, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, node.fd(),
                       static_cast<off_t>(request.offset)),
                  target);
        EXPECT_TRUE(all_equal({target, size}, 0));
        mark(target, 0, pages);
        EXPECT_EQ(first_unmarked(target, 0, pages), pages);
    }
    munmap(room, size + 2 * huge_size);
}

// udmabuf#22, #23: touch and unmap twice, for lengths of every chunk order and beside them.
TEST_P(Mapping, every_chunk_order_can_be_used_twice) {
    const Node node;
    const std::uint64_t before = node.total();
    for (std::size_t order = 0; order <= 11; ++order) {
        for (const std::size_t extra : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
            const std::size_t pages = (std::size_t{1} << order) + extra;
            for (int round = 0; round < 2; ++round) {
                Region region(node, pages * page_size, kind());
                ASSERT_EQ(node.total() - before, pages * page_size);
                mark(region.data(), 0, pages);
                ASSERT_EQ(first_unmarked(region.data(), 0, pages), pages);
                region.unmap();
                ASSERT_TRUE(eventually([&] { return node.total() == before; })) << pages;
            }
        }
    }
}

TEST_P(Mapping, dontneed_brings_the_same_bytes_back) {
    const Node node;
    const Region region(node, huge_size + 3 * page_size, kind());
    const std::size_t pages = region.size() / page_size;
    mark(region.data(), 0, pages);
    const int result = madvise(region.data(), region.size(), MADV_DONTNEED);
    if (GetParam() == HCAMEM_MAPPING_PAGES) {
        EXPECT_EQ(result, 0);
        EXPECT_EQ(madvise(region.data() + page_size, page_size, MADV_DONTNEED), 0);
    }
    EXPECT_EQ(first_unmarked(region.data(), 0, pages), pages);
}

TEST_P(Mapping, locking_and_populating_are_harmless) {
    const Node node;
    const std::uint64_t before = node.total();
    hcamem_create request = create_request(huge_size, kind());
    ASSERT_EQ(node.try_create(request), 0);
    void* mapped =
        mmap(nullptr, huge_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE | MAP_LOCKED,
             node.fd(), static_cast<off_t>(request.offset));
    ASSERT_NE(mapped, MAP_FAILED);
    EXPECT_EQ(mlock(mapped, huge_size), 0);
    EXPECT_EQ(munlock(mapped, huge_size), 0);
    mark(static_cast<unsigned char*>(mapped), 0, 512);
    EXPECT_EQ(first_unmarked(static_cast<unsigned char*>(mapped), 0, 512), 512U);
    munmap(mapped, huge_size);
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

TEST_P(Mapping, is_left_out_of_core_dumps) {
    const Node node;
    const Region region(node, page_size, kind());
    std::string flags;
    bool inside = false;
    std::istringstream lines(read_text("/proc/self/smaps"));
    const std::string head = maps_line(region.data()).substr(0, 12);
    for (std::string line; std::getline(lines, line);) {
        inside = inside || line.starts_with(head);
        if (inside && line.starts_with("VmFlags:")) {
            flags = line;
            break;
        }
    }
    EXPECT_NE(flags.find(" dd"), std::string::npos) << flags;
    EXPECT_NE(flags.find(" de"), std::string::npos) << "does not expand: " << flags;
    EXPECT_EQ(flags.find(" me"), std::string::npos) << "may not become executable: " << flags;
}
