// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Two CPUs meet at an edge of the driver: faults, mappings, forks and exports. Whoever comes first,
// every byte is right and nothing stays behind.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "race.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"

using namespace support;

namespace {

class Race : public NothingHeld {
  protected:
    /// Where a fault of this kind of mapping is about to enter a page.
    static std::string fault_edge() {
        return GetParam() == HCAMEM_MAPPING_PAGES ? "hcamem_insert_pages:vm_insert_pages"
                                                  : "hcamem_fault_pmd:hcamem_insert_pmd";
    }
};

INSTANTIATE_TEST_SUITE_P(, Race, both_mappings, mapping_name);

/// The byte at an address, or -EFAULT where a load would be SIGSEGV or SIGBUS.
int load(const unsigned char* address) {
    int ends[2];
    must(pipe2(ends, O_CLOEXEC), "pipe");
    const UniqueFd reader(ends[0]);
    const UniqueFd writer(ends[1]);
    if (write(writer.get(), address, 1) != 1) {
        return -errno;
    }
    unsigned char byte = 0;
    must(read(reader.get(), &byte, 1), "read the pipe");
    return byte;
}

} // namespace

TEST_P(Race, fault_meets_unmap) {
    const Node node;
    Region region(node, region_bytes, kind());
    const unsigned char* address = region.data();
    collide(
        fault_edge(),
        [&] {
            const int byte = load(address);
            EXPECT_TRUE(byte == 0 || byte == -EFAULT) << byte;
        },
        Second::may_wait, [&] { region.unmap(); });
    EXPECT_EQ(load(address), -EFAULT);
}

TEST_P(Race, small_fault_meets_unmap) {
    const Node node;
    Region region(node, 8 * page_size, kind());
    const unsigned char* address = region.data();
    collide(
        GetParam() == HCAMEM_MAPPING_PAGES ? fault_edge() : "hcamem_fault_ptes:vmf_insert_pfn",
        [&] {
            const int byte = load(address);
            EXPECT_TRUE(byte == 0 || byte == -EFAULT) << byte;
        },
        Second::may_wait, [&] { region.unmap(); });
    EXPECT_EQ(load(address), -EFAULT);
}

TEST_P(Race, fault_meets_fault) {
    const Node node;
    for (const std::size_t size : {region_bytes, 8 * page_size}) {
        const Region region(node, size, kind());
        const std::string edge = GetParam() == HCAMEM_MAPPING_HUGE && size < huge_size
                                     ? "hcamem_fault_ptes:vmf_insert_pfn"
                                     : fault_edge();
        collide(
            edge, [&] { region.data()[0] = 1; }, Second::passes,
            [&] { region.data()[page_size] = 2; });
        EXPECT_EQ(region.data()[0], 1);
        EXPECT_EQ(region.data()[page_size], 2);
        region.data()[size - 1] = 3;
        EXPECT_EQ(load(region.data() + size - 1), 3);
    }
}

TEST_P(Race, fault_meets_changes_of_the_mapping) {
    const Node node;
    const std::function<void(const Region&)> changes[] = {
        [](const Region& r) { mprotect(r.data(), page_size, PROT_READ); },
        [](const Region& r) { madvise(r.data(), r.size(), MADV_DONTNEED); },
        [](const Region& r) { munmap(r.data() + 4 * page_size, page_size); },
        [](const Region& r) {
            mremap(r.data() + 5 * page_size, page_size, page_size, MREMAP_MAYMOVE | MREMAP_FIXED,
                   r.data() + 4 * page_size);
        },
    };
    for (const auto& change : changes) {
        const Region region(node, region_bytes, kind());
        collide(
            fault_edge(), [&] { EXPECT_EQ(load(region.data()), 0); }, Second::may_wait,
            [&] { change(region); });
        EXPECT_EQ(load(region.data()), 0);
        region.data()[2 * page_size] = 1;
        EXPECT_EQ(region.data()[2 * page_size], 1);
    }
}

TEST_P(Race, fault_meets_fork) {
    const Node node;
    const Region region(node, region_bytes, kind());
    collide(
        fault_edge(), [&] { region.data()[0] = 0x77; }, Second::may_wait,
        [&] {
            EXPECT_TRUE(succeeds_in_child({}, [&](Channel&) {
                require(all_equal(region.bytes(), 0), "the child finds zeros");
            }));
        });
    EXPECT_EQ(region.data()[0], 0x77);
}

TEST_P(Race, fork_meets_export_and_unmap) {
    const Node node;
    for (const hcamem_fork fork_policy : {HCAMEM_FORK_POLICY_ZERO, HCAMEM_FORK_POLICY_SHARE}) {
        Region region(node, region_bytes, kind(fork_policy));
        fill(region.bytes(), 5);
        const bool shared = fork_policy == HCAMEM_FORK_POLICY_SHARE;
        const std::string edge =
            shared ? "hcamem_vma_open:kref_get" : "hcamem_make_anonymous:vma_set_anonymous";
        const auto forks = [&] {
            EXPECT_TRUE(succeeds_in_child({}, [&](Channel&) {
                require(shared ? holds(region.bytes(), 5) : all_equal(region.bytes(), 0),
                        "the child finds what its policy says");
            }));
        };
        UniqueFd dma_buf;
        collide(edge, forks, Second::may_wait,
                [&] { dma_buf = node.export_range(region.data(), region.size()); });
        collide(edge, forks, Second::may_wait, [&] { munmap(region.data(), page_size); });
        auto* mapped = static_cast<unsigned char*>(
            mmap(nullptr, region.size(), PROT_READ, MAP_SHARED, dma_buf.get(), 0));
        ASSERT_NE(mapped, MAP_FAILED);
        EXPECT_TRUE(holds({mapped, region.size()}, 5));
        munmap(mapped, region.size());
    }
}

TEST_P(Race, export_meets_fork) {
    const Node node;
    const Region region(node, region_bytes, kind());
    fill(region.bytes(), 6);
    for (const char* edge :
         {"hcamem_find_range:mmap_read_lock", "hcamem_region_get:kref_get",
          "hcamem_find_range:mmap_read_unlock", "hcamem_export_range:dma_buf_export"}) {
        UniqueFd dma_buf;
        collide(
            edge, [&] { dma_buf = node.export_range(region.data(), region.size()); },
            Second::may_wait,
            [&] {
                EXPECT_TRUE(succeeds_in_child({}, [&](Channel&) {
                    require(all_equal(region.bytes(), 0), "the child finds zeros");
                }));
            });
        EXPECT_EQ(lseek(dma_buf.get(), 0, SEEK_END), static_cast<off_t>(region.size()));
    }
}

TEST_P(Race, export_meets_the_last_unmap) {
    const Node node;
    {
        Region region(node, region_bytes, kind());
        hcamem_export request{};
        request.addr = reinterpret_cast<std::uintptr_t>(region.data());
        request.length = region.size();
        collide(
            "hcamem_find_range:mmap_read_lock",
            [&] { EXPECT_EQ(node.try_export(request), EINVAL); }, Second::passes,
            [&] { region.unmap(); });
    }
    for (const char* edge :
         {"hcamem_find_range:mmap_read_unlock", "hcamem_export_range:dma_buf_export",
          "hcamem_ioctl_export:fd_install"}) {
        Region region(node, region_bytes, kind());
        fill(region.bytes(), 7);
        UniqueFd dma_buf;
        collide(
            edge, [&] { dma_buf = node.export_range(region.data(), region.size()); },
            Second::passes, [&] { region.unmap(); });
        EXPECT_EQ(node.total(), region_bytes) << edge;
        auto* mapped = static_cast<unsigned char*>(
            mmap(nullptr, region_bytes, PROT_READ, MAP_SHARED, dma_buf.get(), 0));
        ASSERT_NE(mapped, MAP_FAILED);
        EXPECT_TRUE(holds({mapped, region_bytes}, 7)) << edge;
        munmap(mapped, region_bytes);
    }
}

TEST_P(Race, mmap_meets_the_last_close) {
    for (const char* edge :
         {"hcamem_claim:spin_lock", "hcamem_claim:spin_unlock", "hcamem_mapping_install:mmgrab"}) {
        Node node;
        hcamem_create request = create_request(region_bytes, kind());
        ASSERT_EQ(node.try_create(request), 0);
        void* mapped = MAP_FAILED;
        collide(
            edge,
            [&] {
                mapped = mmap(nullptr, region_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(),
                              static_cast<off_t>(request.offset));
            },
            Second::passes, [&] { node.close(); });
        ASSERT_NE(mapped, MAP_FAILED) << edge;
        const std::span<unsigned char> bytes(static_cast<unsigned char*>(mapped), region_bytes);
        EXPECT_TRUE(all_equal(bytes, 0));
        fill(bytes, 8);
        EXPECT_TRUE(holds(bytes, 8));
        munmap(mapped, region_bytes);
        EXPECT_TRUE(eventually(nothing_held)) << edge;
    }
}

TEST_P(Race, mmap_of_a_dma_buf_meets_its_last_close) {
    for (const char* edge : {"hcamem_region_get:kref_get", "hcamem_dma_buf_mmap:vma_set_file",
                             "hcamem_dma_buf_mmap:fput"}) {
        UniqueFd dma_buf;
        {
            const Node node;
            const Region region(node, region_bytes, kind());
            fill(region.bytes(), 9);
            dma_buf = node.export_range(region.data(), region.size());
        }
        void* mapped = MAP_FAILED;
        collide(
            edge,
            [&] { mapped = mmap(nullptr, region_bytes, PROT_READ, MAP_SHARED, dma_buf.get(), 0); },
            Second::passes, [&] { dma_buf.reset(); });
        ASSERT_NE(mapped, MAP_FAILED) << edge;
        EXPECT_TRUE(holds({static_cast<unsigned char*>(mapped), region_bytes}, 9)) << edge;
        munmap(mapped, region_bytes);
    }
}

TEST_P(Race, two_processes_map_one_offset) {
    const Node node;
    hcamem_create request = create_request(page_size, kind());
    ASSERT_EQ(node.try_create(request), 0);
    const auto map = [&]() -> std::int64_t {
        void* mapped = mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(),
                            static_cast<off_t>(request.offset));
        return mapped == MAP_FAILED ? errno : munmap(mapped, page_size);
    };
    const auto map_when_told = [&](Channel& channel) {
        (void)channel.receive();
        channel.send(map());
    };
    Child slow(map_when_told);
    Child fast(map_when_told);
    const auto tell = [](Child& child) {
        child.channel().send(0);
        return child.channel().receive();
    };
    collide(
        "hcamem_claim:spin_lock", [&] { EXPECT_EQ(tell(slow), ENXIO) << "it came too late"; },
        Second::passes, [&] { EXPECT_EQ(tell(fast), 0); });
}

TEST_P(Race, mmap_meets_the_end_of_create) {
    const Node node;
    hcamem_create request = create_request(page_size, kind());
    collide(
        "hcamem_ioctl_create:xa_store", [&] { EXPECT_EQ(node.try_create(request), 0); },
        Second::passes,
        [&] {
            // The first region of a file is at the first offset; anybody may guess it.
            EXPECT_EQ(mmap(nullptr, page_size, PROT_READ, MAP_SHARED, node.fd(), huge_size),
                      MAP_FAILED);
            EXPECT_EQ(errno, ENXIO);
        });
    EXPECT_EQ(request.offset, huge_size);
}
