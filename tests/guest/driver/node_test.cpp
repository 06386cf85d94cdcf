// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The nodes: what they tell, and how they come and go with HCA and module.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "kinds.hpp"
#include "support/child.hpp"
#include "support/guest.hpp"
#include "support/hca.hpp"
#include "support/killed.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

std::string name_in(const hcamem_info& info) {
    const auto* name = reinterpret_cast<const char*>(info.ibdev);
    return {name, strnlen(name, sizeof info.ibdev)};
}

std::string attribute(const std::string& node, const std::string& name) {
    return read_text("/sys/class/hcamem/" + node + "/" + name);
}

/// Names in a folder, hidden ones too.
std::set<std::string> names_in(const std::string& folder) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        names.insert(entry.path().filename());
    }
    return names;
}

} // namespace

TEST(Node, R01_memory_comes_from_mmap_of_the_node) {
    for (const char* hca : {"rxe0", "rxe1"}) {
        const Node node(hca);
        const std::uint64_t before = node.info().node_bytes;
        void* mapped = mmap(nullptr, huge_size, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(), 0);
        ASSERT_NE(mapped, MAP_FAILED) << std::strerror(errno);
        const std::span<unsigned char> bytes(static_cast<unsigned char*>(mapped), huge_size);
        EXPECT_TRUE(all_equal(bytes, 0));
        fill(bytes, 1);
        EXPECT_TRUE(holds(bytes, 1));
        EXPECT_EQ(node.info().node_bytes - before, huge_size);
        EXPECT_NE(maps_line(mapped).find(Node::path_of(hca)), std::string::npos)
            << maps_line(mapped);
        munmap(mapped, huge_size);
    }
}

TEST(Node, R01_every_hca_has_exactly_one) {
    std::set<std::string> hcas;
    for (const std::string& node : Node::names()) {
        EXPECT_TRUE(hcas.insert(Node::ibdev_of(node)).second) << node;
        struct stat status {};
        const std::string path = "/dev/infiniband/" + node;
        ASSERT_EQ(stat(path.c_str(), &status), 0) << path;
        EXPECT_TRUE(S_ISCHR(status.st_mode));
        EXPECT_EQ(status.st_mode & 07777, 0666U) << "limits do the guarding";
    }
    EXPECT_EQ(hcas, names_in("/sys/class/infiniband"));
}

TEST(Node, tells_version_hca_limits_and_usage) {
    const Node node("rxe1");
    const hcamem_info info = node.info();
    EXPECT_EQ(info.abi_version, static_cast<unsigned>(HCAMEM_ABI_VERSION));
    EXPECT_EQ(info.driver_id, 14U) << "RDMA_DRIVER_RXE";
    EXPECT_EQ(name_in(info), "rxe1");
    EXPECT_EQ(info.numa_node, -1);
    EXPECT_EQ(info.gone, 0U);
    EXPECT_EQ(info.capabilities & (HCAMEM_CAP_HUGE | HCAMEM_CAP_PAGES | HCAMEM_CAP_EXPORT),
              HCAMEM_CAP_HUGE | HCAMEM_CAP_PAGES | HCAMEM_CAP_EXPORT);
    const std::string parameters = "/sys/module/hcamem/parameters/";
    EXPECT_EQ(info.max_bytes, read_number(parameters + "max_bytes"));
    EXPECT_EQ(info.max_bytes_per_user, read_number(parameters + "max_bytes_per_user"));
    EXPECT_EQ(info.reserve_bytes, read_number(parameters + "reserve_bytes"));
    EXPECT_GT(info.max_bytes, 0U);
    EXPECT_LT(info.max_bytes, meminfo("MemTotal")) << "a finite default, part of memory";
    EXPECT_GT(info.reserve_bytes, 0U);
}

TEST(Node, usage_counts_node_user_and_all) {
    const Node first("rxe0");
    const Node second("rxe1");
    const hcamem_info before0 = first.info();
    const hcamem_info before1 = second.info();
    const Region region(first, 3 * page_size);
    const hcamem_info after0 = first.info();
    const hcamem_info after1 = second.info();
    EXPECT_EQ(after0.node_bytes - before0.node_bytes, 3 * page_size);
    EXPECT_EQ(after1.node_bytes, before1.node_bytes);
    EXPECT_EQ(after1.user_bytes - before1.user_bytes, 3 * page_size);
    EXPECT_EQ(after1.total_bytes - before1.total_bytes, 3 * page_size);
    const Identity other{fresh_user(), RLIM_INFINITY, {}};
    EXPECT_EQ(value_from_child(other, [&] { return second.info().user_bytes; }), 0);
}

TEST(Node, sysfs_tells_the_same) {
    const Node node("rxe0");
    const std::string name = *Node::name_of("rxe0");
    const std::uint64_t bytes = read_number("/sys/class/hcamem/" + name + "/bytes_in_use");
    const std::uint64_t regions = read_number("/sys/class/hcamem/" + name + "/regions");
    EXPECT_EQ(bytes, node.info().node_bytes);
    EXPECT_EQ(attribute(name, "numa_node"), "-1\n");
    {
        const Region one(node, 5 * page_size);
        const Region two(node, huge_size, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_ZERO});
        EXPECT_EQ(read_number("/sys/class/hcamem/" + name + "/bytes_in_use") - bytes,
                  5 * page_size + huge_size);
        EXPECT_EQ(read_number("/sys/class/hcamem/" + name + "/regions") - regions, 2U);
    }
    EXPECT_EQ(read_number("/sys/class/hcamem/" + name + "/bytes_in_use"), bytes);
    EXPECT_EQ(read_number("/sys/class/hcamem/" + name + "/regions"), regions);
}

TEST(Node, R01_goes_with_its_hca_and_comes_back_with_it) {
    Hca hca("rxe1");
    Node node("rxe1");
    const Node other("rxe0");
    const std::string path = Node::path_of("rxe1");
    Region pages(node, 4 * page_size);
    Region huge(node, huge_size, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_ZERO});
    const Region half_seen(node, 2 * huge_size, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_ZERO});
    const UniqueFd dma_buf = node.export_range(pages.data(), pages.size());
    fill(pages.bytes(), 1);
    fill(huge.bytes(), 2);
    hcamem_create waiting = create_request(page_size);
    ASSERT_EQ(node.try_create(waiting), 0);

    hca.remove();
    EXPECT_FALSE(Node::name_of("rxe1").has_value());
    EXPECT_FALSE(std::filesystem::exists(path));

    EXPECT_EQ(Region::attempt(node, page_size), ENODEV);
    EXPECT_EQ(mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(), 0),
              MAP_FAILED);
    EXPECT_EQ(errno, ENODEV);
    hcamem_export out{};
    out.addr = reinterpret_cast<std::uintptr_t>(pages.data());
    out.length = page_size;
    EXPECT_EQ(node.try_export(out), ENODEV);
    const hcamem_info info = node.info();
    EXPECT_EQ(info.gone, 1U);
    EXPECT_EQ(name_in(info), "rxe1");

    EXPECT_TRUE(holds(pages.bytes(), 1)) << "what exists stays usable";
    EXPECT_TRUE(holds(huge.bytes(), 2));
    EXPECT_TRUE(all_equal(half_seen.bytes(), 0)) << "also where it was never touched";
    fill(huge.bytes(), 3);
    EXPECT_TRUE(holds(huge.bytes(), 3));
    EXPECT_TRUE(succeeds_in_child({}, [&](Channel&) {
        require(all_equal(huge.bytes(), 0), "a child of an orphaned region sees zeros");
    }));

    hca.add();
    const Node again("rxe1");
    EXPECT_EQ(again.info().gone, 0U);
    EXPECT_EQ(Region::attempt(again, huge_size), 0);
    EXPECT_EQ(node.info().gone, 1U) << "the old file does not come back to life";
    node.close();
    EXPECT_TRUE(holds(pages.bytes(), 1));
    const std::uint64_t held = other.total();
    huge.unmap();
    EXPECT_TRUE(eventually([&] { return held - other.total() == huge_size; }));
}

TEST(Node, opening_races_with_the_removal) {
    Hca hca("rxe1");
    const std::string path = Node::path_of("rxe1");
    // Opens in a loop while the HCA comes and goes: it works, or the node is not there.
    Child opener([&](Channel& channel) {
        channel.send(0);
        for (;;) {
            const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
            if (!fd.valid()) {
                require(errno == ENOENT || errno == ENXIO || errno == ENODEV,
                        std::string("open: ") + std::strerror(errno));
                continue;
            }
            const Node node{UniqueFd(dup(fd.get()))};
            const int error = Region::attempt(node, page_size);
            require(error == 0 || error == ENODEV, std::string("CREATE: ") + std::strerror(error));
        }
    });
    (void)opener.channel().receive();
    for (int i = 0; i < 5; ++i) {
        hca.remove();
        hca.add();
    }
    opener.kill_now();
    EXPECT_TRUE(was_killed(opener)) << "the opener found something wrong";
}

TEST(Node, R01_follows_a_rename_of_its_hca) {
    const Node node("rxe1");
    must_shell("rdma dev set rxe1 name renamed0");
    EXPECT_EQ(name_in(node.info()), "renamed0");
    EXPECT_TRUE(Node::name_of("renamed0").has_value());
    EXPECT_FALSE(Node::name_of("rxe1").has_value());
    must_shell("rdma dev set renamed0 name rxe1");
    EXPECT_EQ(name_in(node.info()), "rxe1");
    EXPECT_TRUE(Node::name_of("rxe1").has_value());
}

TEST(Module, R01_is_not_unloaded_while_anything_is_held) {
    const std::string rmmod = "rmmod hcamem 2>/dev/null";
    auto node = std::make_unique<Node>();
    EXPECT_NE(shell(rmmod), 0) << "an open file";
    auto region = std::make_unique<Region>(*node, page_size);
    UniqueFd dma_buf = node->export_range(region->data(), page_size);
    node.reset();
    EXPECT_NE(shell(rmmod), 0) << "a mapping and a dma-buf";
    dma_buf.reset();
    EXPECT_NE(shell(rmmod), 0) << "a mapping";
    dma_buf = Node().export_range(region->data(), page_size);
    region.reset();
    EXPECT_NE(shell(rmmod), 0) << "a dma-buf";
    void* mapped = mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, dma_buf.get(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    dma_buf.reset();
    EXPECT_NE(shell(rmmod), 0) << "a mapping of a dma-buf";
    munmap(mapped, page_size);

    unload_module();
    EXPECT_FALSE(std::filesystem::exists("/sys/class/hcamem"));
    must_shell("insmod " + environment("HCAMEM_MODULE"));
    EXPECT_TRUE(eventually([] { return Node::names().size() == 2; }));
    EXPECT_EQ(Region::attempt(Node(), huge_size), 0);
}

TEST(Module, is_not_unloaded_while_a_page_is_kept_by_someone_else) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    {
        const Region region(Node(), page_size);
        iovec part{region.data(), page_size};
        ASSERT_EQ(vmsplice(writer.get(), &part, 1, 0), static_cast<ssize_t>(page_size));
    }
    const int status = shell("rmmod hcamem 2>/dev/null");
    if (status == 0) {
        // Allowed only if the page is returned without the module's code.
        must_shell("insmod " + environment("HCAMEM_MODULE"));
        ADD_FAILURE() << "unloaded although a page of it is in a pipe";
    }
    reader.reset();
    writer.reset();
    const Node node;
    EXPECT_TRUE(eventually([&] { return node.total() == 0; })) << node.total();
}

TEST(Module, loads_and_unloads_again_and_again) {
    for (int i = 0; i < 10; ++i) {
        {
            const Region region(Node("rxe0"), huge_size + page_size);
            region.data()[huge_size] = 1;
        }
        unload_module();
        EXPECT_TRUE(Node::names().empty());
        must_shell("insmod " + environment("HCAMEM_MODULE"));
        ASSERT_EQ(Node::names().size(), 2U);
    }
}
