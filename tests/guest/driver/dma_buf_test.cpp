// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// dma-bufs: what they hold, how long, and who gets at them.
#include <gtest/gtest.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

#include "kinds.hpp"
#include "support/child.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

class DmaBuf : public MappingModes {
  protected:
    static std::span<unsigned char> map(const UniqueFd& fd, std::size_t length,
                                        std::size_t offset = 0) {
        void* mapped = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(),
                            static_cast<off_t>(offset));
        if (mapped == MAP_FAILED) {
            return {};
        }
        return {static_cast<unsigned char*>(mapped), length};
    }
};

INSTANTIATE_TEST_SUITE_P(, DmaBuf, both_mappings, mapping_name);

std::size_t size_of(const UniqueFd& fd) {
    return static_cast<std::size_t>(lseek(fd.get(), 0, SEEK_END));
}

} // namespace

TEST_P(DmaBuf, holds_exactly_the_pages_of_the_range) {
    const Node node;
    const Region region(node, 3 * huge_size, kind());
    struct Case {
        std::size_t at;
        std::size_t length;
        std::size_t pages;
    };
    for (const Case& c : {Case{0, 1, 1}, Case{page_size - 1, 1, 1}, Case{page_size - 1, 2, 2},
                          Case{0, page_size, 1}, Case{0, page_size + 1, 2},
                          Case{5 * page_size + 7, 2 * page_size, 3}, Case{huge_size - 10, 20, 2},
                          Case{0, 3 * huge_size, 1536}, Case{3 * huge_size - 1, 1, 1}}) {
        std::uint64_t offset = ~std::uint64_t{0};
        const UniqueFd fd = node.export_range(region.data() + c.at, c.length, &offset);
        EXPECT_EQ(size_of(fd), c.pages * page_size) << c.at << '+' << c.length;
        EXPECT_EQ(offset, c.at % page_size);
    }
}

TEST_P(DmaBuf, mmap_shows_the_same_bytes_at_every_offset) {
    const Node node;
    const Region region(node, 3 * huge_size, kind());
    fill(region.bytes(), 1);
    for (const std::size_t first :
         {std::size_t{0}, std::size_t{1}, std::size_t{511}, std::size_t{512}, std::size_t{700}}) {
        const std::size_t start = first * page_size;
        const std::size_t length = huge_size + 2 * page_size;
        const UniqueFd fd = node.export_range(region.data() + start, length);
        for (const std::size_t offset : {std::size_t{0}, page_size, 2 * page_size}) {
            const auto seen = map(fd, length - offset, offset);
            ASSERT_FALSE(seen.empty());
            ASSERT_TRUE(holds(seen, 1, start + offset)) << first << ' ' << offset;
            munmap(seen.data(), seen.size());
        }
    }
    const UniqueFd fd = node.export_range(region.data() + 9 * page_size, 4 * page_size);
    const auto window = map(fd, 2 * page_size, page_size);
    ASSERT_FALSE(window.empty());
    std::memset(window.data(), 0x99, window.size());
    EXPECT_TRUE(holds({region.data(), 10 * page_size}, 1));
    EXPECT_TRUE(all_equal({region.data() + 10 * page_size, 2 * page_size}, 0x99));
    EXPECT_TRUE(holds({region.data() + 12 * page_size, 5 * page_size}, 1, 12 * page_size));
    munmap(window.data(), window.size());
}

TEST_P(DmaBuf, mmap_beyond_its_end_is_refused) {
    const Node node;
    const Region region(node, 8 * page_size, kind());
    const UniqueFd fd = node.export_range(region.data() + page_size, 2 * page_size);
    EXPECT_TRUE(map(fd, 3 * page_size).empty());
    EXPECT_EQ(errno, EINVAL);
    EXPECT_TRUE(map(fd, page_size, 2 * page_size).empty());
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd.get(), 0),
              MAP_FAILED);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(mmap(nullptr, page_size, PROT_READ | PROT_EXEC, MAP_SHARED, fd.get(), 0), MAP_FAILED);
    EXPECT_EQ(errno, EPERM);
    const auto seen = map(fd, page_size);
    ASSERT_FALSE(seen.empty());
    EXPECT_EQ(mprotect(seen.data(), page_size, PROT_READ | PROT_EXEC), -1);
    EXPECT_EQ(errno, EACCES);
    EXPECT_EQ(mremap(seen.data(), page_size, 2 * page_size, MREMAP_MAYMOVE), MAP_FAILED);
    munmap(seen.data(), page_size);
}

TEST_P(DmaBuf, can_be_exported_again_from_its_own_mapping) {
    const Node node;
    const Region region(node, huge_size, kind());
    fill(region.bytes(), 1);
    const UniqueFd fd = node.export_range(region.data() + 3 * page_size, 6 * page_size);
    const auto seen = map(fd, 5 * page_size, page_size);
    ASSERT_FALSE(seen.empty());
    std::uint64_t offset = 0;
    const UniqueFd again = node.export_range(seen.data() + 2 * page_size + 8, page_size, &offset);
    EXPECT_EQ(offset, 8U);
    EXPECT_EQ(size_of(again), 2 * page_size);
    const auto inner = map(again, 2 * page_size);
    ASSERT_FALSE(inner.empty());
    EXPECT_TRUE(holds(inner, 1, 6 * page_size));
    munmap(inner.data(), inner.size());
    munmap(seen.data(), seen.size());
}

TEST_P(DmaBuf, export_takes_a_range_whose_mapping_was_split) {
    const Node node;
    const Region region(node, 8 * page_size, kind());
    fill(region.bytes(), 1);
    ASSERT_EQ(mprotect(region.data() + 2 * page_size, page_size, PROT_READ), 0);
    const UniqueFd fd = node.export_range(region.data(), region.size());
    const auto seen = map(fd, region.size());
    ASSERT_FALSE(seen.empty());
    EXPECT_TRUE(holds(seen, 1));
    munmap(seen.data(), seen.size());
}

TEST_P(DmaBuf, export_refuses_pages_that_are_not_in_order) {
    const Node node;
    const Region region(node, 4 * page_size, kind());
    // Page 2 moves to where page 1 was: one region, but not one stretch of it.
    ASSERT_EQ(mremap(region.data() + 2 * page_size, page_size, page_size,
                     MREMAP_MAYMOVE | MREMAP_FIXED, region.data() + page_size),
              region.data() + page_size);
    hcamem_export request{};
    request.addr = reinterpret_cast<std::uintptr_t>(region.data());
    request.length = 2 * page_size;
    EXPECT_EQ(node.try_export(request), EINVAL);
    request.addr += page_size;
    request.length = page_size;
    ASSERT_EQ(node.try_export(request), 0);
    const UniqueFd fd(request.fd);
}

TEST_P(DmaBuf, descriptor_closes_on_exec) {
    const Node node;
    const Region region(node, page_size, kind());
    const UniqueFd fd = node.export_range(region.data(), page_size);
    EXPECT_EQ(fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
}

TEST_P(DmaBuf, keeps_the_whole_region_until_its_last_user) {
    const Node node;
    const std::uint64_t before = node.total();
    auto region = std::make_unique<Region>(node, huge_size, kind());
    fill(region->bytes(), 1);
    UniqueFd fd = node.export_range(region->data() + 7 * page_size, page_size);
    region.reset();
    EXPECT_EQ(node.total() - before, huge_size);
    auto seen = map(fd, page_size);
    ASSERT_FALSE(seen.empty());
    EXPECT_TRUE(holds(seen, 1, 7 * page_size));
    fd.reset();
    EXPECT_EQ(node.total() - before, huge_size);
    EXPECT_TRUE(holds(seen, 1, 7 * page_size));
    munmap(seen.data(), seen.size());
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

TEST_P(DmaBuf, passes_to_another_process_and_outlives_its_creator) {
    const Node node;
    const std::uint64_t before = node.total();
    UniqueFd fd;
    {
        Child creator([&](Channel& channel) {
            const Region region(node, huge_size, kind());
            fill(region.bytes(), 4);
            channel.send_fd(node.export_range(region.data() + page_size, 5 * page_size).get());
            (void)channel.receive();
            require(region.data()[2 * page_size] == 0x21, "what the other process wrote");
        });
        fd = creator.channel().receive_fd();
        const auto seen = map(fd, 5 * page_size);
        ASSERT_FALSE(seen.empty());
        EXPECT_TRUE(holds(seen, 4, page_size));
        seen[page_size] = 0x21;
        creator.channel().send(0);
        EXPECT_EQ(creator.wait(), 0);
        EXPECT_EQ(seen[page_size], 0x21);
        EXPECT_TRUE(holds(seen.subspan(2 * page_size), 4, 3 * page_size));
        munmap(seen.data(), seen.size());
    }
    EXPECT_EQ(node.total() - before, huge_size);
    fd.reset();
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

TEST_P(DmaBuf, R12_its_mapping_follows_the_fork_policy_too) {
    const Node node;
    for (const hcamem_fork fork :
         {HCAMEM_FORK_POLICY_ZERO, HCAMEM_FORK_POLICY_DONTCOPY, HCAMEM_FORK_POLICY_SHARE}) {
        const std::uint64_t before = node.total();
        {
            const Region region(node, 4 * page_size, {GetParam(), fork});
            fill(region.bytes(), 1);
            const UniqueFd fd = node.export_range(region.data(), region.size());
            const auto seen = map(fd, region.size());
            ASSERT_FALSE(seen.empty());
            for (const int advice : {0, MADV_KEEPONFORK, MADV_DOFORK}) {
                if (advice != 0) {
                    madvise(seen.data(), seen.size(), advice);
                }
                EXPECT_TRUE(succeeds_in_child({},
                                              [&](Channel&) {
                                                  if (fork == HCAMEM_FORK_POLICY_SHARE) {
                                                      require(holds(seen, 1), "shared");
                                                  } else if (!maps_line(seen.data()).empty()) {
                                                      require(all_equal(seen, 0), "zeros");
                                                      std::memset(seen.data(), 0xee, seen.size());
                                                  }
                                              }))
                    << to_string(fork) << ' ' << advice;
                EXPECT_TRUE(holds(region.bytes(), 1)) << to_string(fork) << ' ' << advice;
            }
            munmap(seen.data(), seen.size());
        }
        EXPECT_TRUE(eventually([&] { return node.total() == before; }));
    }
}

TEST_P(DmaBuf, cpu_access_calls_are_taken) {
    const Node node;
    const Region region(node, page_size, kind());
    const UniqueFd fd = node.export_range(region.data(), page_size);
    dma_buf_sync sync{DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW};
    EXPECT_EQ(ioctl(fd.get(), DMA_BUF_IOCTL_SYNC, &sync), 0);
    sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW;
    EXPECT_EQ(ioctl(fd.get(), DMA_BUF_IOCTL_SYNC, &sync), 0);
}

TEST_P(DmaBuf, many_descriptors_are_bounded_by_the_process_limit) {
    EXPECT_TRUE(succeeds_in_child({}, [&](Channel&) {
        const Node node;
        const Region region(node, page_size, kind());
        const std::size_t open_now = open_descriptors();
        const rlimit limit{open_now + 10, open_now + 10};
        setrlimit(RLIMIT_NOFILE, &limit);
        std::vector<UniqueFd> held;
        int error = 0;
        while (error == 0) {
            hcamem_export request{};
            request.addr = reinterpret_cast<std::uintptr_t>(region.data());
            request.length = 1;
            error = node.try_export(request);
            if (error == 0) {
                held.emplace_back(request.fd);
            }
            require(held.size() <= 10, "no end");
        }
        require(error == EMFILE, std::strerror(error));
    }));
}
