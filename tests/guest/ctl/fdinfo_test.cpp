// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What /proc/PID/fdinfo tells of an open node and of a dma-buf, and who may read debugfs.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <sstream>

#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/hca.hpp"
#include "support/node.hpp"
#include "tool.hpp"

using namespace support;

namespace {

/// Value of a line "NAME:\tvalue"; throws if there is none.
std::string fdinfo(int fd, const std::string& name) {
    std::istringstream lines(read_text("/proc/self/fdinfo/" + std::to_string(fd)));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(name + ":\t")) {
            return line.substr(name.size() + 2);
        }
    }
    throw std::runtime_error("fdinfo has no " + name);
}

} // namespace

TEST(Fdinfo, of_a_node_counts_what_is_created_and_not_mapped) {
    const Node node("rxe1");
    EXPECT_EQ(fdinfo(node.fd(), "hcamem-node"), *Node::name_of("rxe1"));
    EXPECT_EQ(fdinfo(node.fd(), "hcamem-gone"), "0");
    EXPECT_EQ(fdinfo(node.fd(), "hcamem-unmapped-regions"), "0");
    hcamem_create first = create_request(3 * page_size);
    hcamem_create second = create_request(5 * page_size);
    ASSERT_EQ(node.try_create(first), 0);
    ASSERT_EQ(node.try_create(second), 0);
    EXPECT_EQ(fdinfo(node.fd(), "hcamem-unmapped-regions"), "2");
    EXPECT_EQ(fdinfo(node.fd(), "hcamem-unmapped-bytes"), std::to_string(8 * page_size));
    void* mapped = mmap(nullptr, 3 * page_size, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(),
                        static_cast<off_t>(first.offset));
    ASSERT_NE(mapped, MAP_FAILED);
    EXPECT_EQ(fdinfo(node.fd(), "hcamem-unmapped-regions"), "1");
    EXPECT_EQ(fdinfo(node.fd(), "hcamem-unmapped-bytes"), std::to_string(5 * page_size));
    munmap(mapped, 3 * page_size);
}

TEST(Fdinfo, of_a_node_says_when_the_hca_is_gone) {
    Hca hca("rxe1");
    const Node node("rxe1");
    hca.remove();
    EXPECT_EQ(fdinfo(node.fd(), "hcamem-gone"), "1");
}

TEST(Fdinfo, of_a_dma_buf_names_the_exporter) {
    const Node node("rxe0");
    const Region region(node, 4 * page_size);
    const UniqueFd dma_buf = node.export_range(region.data(), 2 * page_size);
    EXPECT_EQ(fdinfo(dma_buf.get(), "exp_name"), "hcamem");
    EXPECT_EQ(fdinfo(dma_buf.get(), "size"), std::to_string(2 * page_size));
}

TEST(Debugfs, is_for_root_only) {
    for (const char* name : {"regions", "frames"}) {
        struct stat status {};
        const std::string path = std::string("/sys/kernel/debug/hcamem/") + name;
        ASSERT_EQ(stat(path.c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 07777, 0400U) << path;
    }
}

TEST(Debugfs, frames_cover_a_region_page_by_page) {
    const Node node("rxe0");
    const Region region(node, 5 * MiB, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_ZERO});
    const std::string id = regions_of(getpid()).at(0).at("region").dump();
    std::istringstream lines(read_text("/sys/kernel/debug/hcamem/frames"));
    std::size_t pages = 0;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        std::string of;
        std::string frame;
        std::size_t count = 0;
        std::string zone;
        ASSERT_TRUE(fields >> of >> frame >> count >> zone) << line;
        if (of == id) {
            pages += count;
            EXPECT_TRUE(frame.starts_with("0x")) << line;
            EXPECT_NE(zone, "Movable");
        }
    }
    EXPECT_EQ(pages * page_size, 5 * MiB);
}
