// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Every call of the driver that can fail is made to fail once, in every scenario: the
// caller gets an errno or the whole thing, nothing is left behind, and the same scenario
// works right after.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <iostream>
#include <set>
#include <string>
#include <system_error>

#include "../../support/guest.hpp"
#include "../../support/node.hpp"
#include "../importer/importer.hpp"
#include "inject_module.hpp"

using namespace support;

namespace {

constexpr const char* parameters = inject_parameters;
// Large, middle and single chunks.
constexpr std::size_t region_bytes = 6 * MiB + 64 * KiB + page_size;

class Injection : public OnInjectModule<testing::Test> {
  protected:
    static std::string last_failure() {
        auto text = read_text(std::string(parameters) + "inject_last");
        return text.substr(0, text.find('\n'));
    }

    /// Makes the first, second, ... injectable call of the scenario fail until it has none
    /// left. The scenario returns 0 or the errno that it was told.
    void fail_each_call(const std::function<int()>& body, const std::set<std::string>& expected,
                        const std::function<void(int)>& arm = arm_here) {
        // The support classes throw what the kernel said.
        const auto scenario = [&body] {
            try {
                return body();
            } catch (const std::system_error& error) {
                return error.code().value();
            }
        };
        Node watcher;
        std::set<std::string> failed;
        ASSERT_EQ(scenario(), 0) << "the scenario must work untouched";
        ASSERT_TRUE(eventually([&] { return watcher.total() == 0; }));
        const auto descriptors = open_descriptors();

        for (int nth = 1;; ++nth) {
            ASSERT_LT(nth, 10000) << "no end of injectable calls";
            arm(nth);
            const int error = scenario();
            const bool hit = read_number(std::string(parameters) + "inject_nth") == 0;
            const auto call = last_failure();
            arm(0);
            if (!hit)
                break;
            failed.insert(call);
            EXPECT_GE(error, 0);
            EXPECT_TRUE(eventually([&] { return watcher.total() == 0; }))
                << "bytes left after " << call << " failed, call " << nth;
            EXPECT_EQ(open_descriptors(), descriptors) << call << ", call " << nth;
            EXPECT_EQ(read_number("/sys/class/hcamem/" + *Node::name_of("rxe0") + "/regions"), 0u)
                << call << ", call " << nth;
            EXPECT_EQ(scenario(), 0) << "after " << call << " failed, call " << nth;
        }
        for (const auto& call : expected)
            EXPECT_TRUE(failed.contains(call)) << call << " was never made to fail";
        std::cout << "made to fail:";
        for (const auto& call : failed)
            std::cout << ' ' << call;
        std::cout << '\n';
    }

    static void arm_here(int nth) {
        write_text(std::string(parameters) + "inject_nth", std::to_string(nth));
    }
};

/// Every page, since every fault is a scenario of its own.
int touch(void* memory, std::size_t size) {
    auto* bytes = static_cast<unsigned char*>(memory);
    for (std::size_t at = 0; at < size; at += page_size) {
        bytes[at] = static_cast<unsigned char>(at / page_size * 7 + 1);
    }
    for (std::size_t at = 0; at < size; at += page_size) {
        if (bytes[at] != static_cast<unsigned char>(at / page_size * 7 + 1)) {
            return EIO;
        }
    }
    return 0;
}

int create_map_touch(hcamem_mapping mapping) {
    Node node;
    auto request = create_request(region_bytes, {mapping, HCAMEM_FORK_POLICY_ZERO});
    if (const int error = node.try_create(request))
        return error;
    void* memory = mmap(nullptr, request.size, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(),
                        static_cast<off_t>(request.offset));
    if (memory == MAP_FAILED)
        return errno;
    const int result = touch(memory, request.size);
    munmap(memory, request.size);
    return result;
}

TEST_F(Injection, create_map_and_touch_pages) {
    fail_each_call([] { return create_map_touch(HCAMEM_MAPPING_PAGES); },
                   {"kzalloc", "kvmalloc_array", "alloc_pages_node", "xa_alloc", "copy_to_user",
                    "copy_struct_from_user", "fatal_signal_pending", "vm_insert_pages"});
}

TEST_F(Injection, create_map_and_touch_huge) {
    fail_each_call([] { return create_map_touch(HCAMEM_MAPPING_HUGE); },
                   {"kzalloc", "kvmalloc_array", "alloc_pages_node", "xa_alloc", "copy_to_user",
                    "copy_struct_from_user", "fatal_signal_pending"});
}

TEST_F(Injection, bare_mmap) {
    fail_each_call(
        [] {
            Node node;
            void* memory =
                mmap(nullptr, region_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(), 0);
            if (memory == MAP_FAILED)
                return errno;
            const int result = touch(memory, region_bytes);
            munmap(memory, region_bytes);
            return result;
        },
        {"kzalloc", "kvmalloc_array", "alloc_pages_node", "fatal_signal_pending",
         "vm_insert_pages"});
}

TEST_F(Injection, open_of_the_node) {
    fail_each_call(
        [] {
            const int fd = open(Node::path_of("rxe0").c_str(), O_RDWR | O_CLOEXEC);
            if (fd < 0)
                return errno;
            close(fd);
            return 0;
        },
        {"kzalloc"});
}

TEST_F(Injection, export_and_map_the_dma_buf) {
    fail_each_call(
        [] {
            Node node;
            // Set up with nothing armed to fail: this scenario is about the export.
            const auto armed = read_number(std::string(parameters) + "inject_nth");
            arm_here(0);
            Region region(node, region_bytes);
            arm_here(static_cast<int>(armed));

            hcamem_export request{};
            request.addr = reinterpret_cast<std::uint64_t>(region.data()) + page_size;
            request.length = region_bytes - 2 * page_size;
            if (const int error = node.try_export(request))
                return error;
            const UniqueFd buffer(request.fd);
            void* memory =
                mmap(nullptr, request.length, PROT_READ | PROT_WRITE, MAP_SHARED, buffer.get(), 0);
            if (memory == MAP_FAILED)
                return errno;
            const int result = touch(memory, request.length);
            munmap(memory, request.length);
            return result;
        },
        {"kzalloc", "copy_struct_from_user", "copy_to_user", "get_unused_fd_flags",
         "dma_buf_export", "anon_inode_getfile", "vm_insert_pages"});
}

TEST_F(Injection, attach_map_and_vmap_by_an_importer) {
    const Importer importer;
    fail_each_call(
        [&] {
            Node node;
            const auto armed = read_number(std::string(parameters) + "inject_nth");
            arm_here(0);
            Region region(node, region_bytes);
            fill(region.bytes(), 3);
            const UniqueFd buffer = node.export_range(region.data(), region.size());
            arm_here(static_cast<int>(armed));
            return importer.try_attach_map_vmap_detach(buffer.get());
        },
        {"kzalloc", "sg_alloc_table", "dma_map_sgtable", "kvmalloc_array", "vmap"});
}

// The HCA's registration calls the driver in the process that adds the HCA: a node that
// cannot be made is missing, and the HCA works without it.
TEST_F(Injection, node_of_a_new_hca) {
    std::set<std::string> failed;
    for (int nth = 1;; ++nth) {
        ASSERT_LT(nth, 100);
        must_shell("rdma link delete rxe1");
        // exec: the process that arms is the one that adds.
        must_shell("echo " + std::to_string(nth) + " > " + parameters +
                   "inject_nth && exec rdma link add rxe1 type rxe netdev v1");
        const bool hit = read_number(std::string(parameters) + "inject_nth") == 0;
        if (hit)
            failed.insert(last_failure());
        EXPECT_EQ(Node::name_of("rxe1").has_value(), !hit) << last_failure();
        arm_here(0);
        if (!hit)
            break;
    }
    for (const auto* call : {"kzalloc", "ida_alloc_max", "dev_set_name", "cdev_device_add"})
        EXPECT_TRUE(failed.contains(call)) << call;
}

} // namespace
