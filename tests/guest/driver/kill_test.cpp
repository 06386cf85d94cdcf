// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// kill -9 in the middle of everything: nothing stays behind.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstring>
#include <functional>
#include <vector>

#include "kinds.hpp"
#include "support/child.hpp"
#include "support/guest.hpp"
#include "support/killed.hpp"
#include "support/node.hpp"
#include "support/rdma.hpp"

using namespace support;

namespace {

constexpr rlim_t limit = 256 * MiB;

/// Of each kind: more than 200 in all. On the sanitizing kernel each takes seconds.
int kills() {
    return kernel() == "sanitize" ? 8 : 70;
}

/// What must be the same after the kills as before them.
class Kill : public testing::Test {
  protected:
    void SetUp() override {
        bytes_ = node_.total();
        regions_ = regions();
        available_ = meminfo("MemAvailable");
    }
    void TearDown() override {
        EXPECT_TRUE(eventually([&] { return node_.total() == bytes_; })) << node_.total();
        EXPECT_TRUE(eventually([&] { return regions() == regions_; })) << regions();
        // locked_vm of the user: the whole limit is to be had again.
        EXPECT_EQ(value_from_child(user_, [] { return Region::attempt(Node(), limit); }), 0);
        EXPECT_TRUE(eventually([&] { return meminfo("MemAvailable") + 64 * MiB > available_; }))
            << available_ << " before, " << meminfo("MemAvailable") << " after";
    }

    static std::uint64_t regions() {
        return read_number("/sys/class/hcamem/" + *Node::name_of("rxe0") + "/regions");
    }

    /// Runs the body in children and kills each: after `wait` says that it is in the middle.
    void kill_again_and_again(int count, const Child::Body& body,
                              const std::function<void(Child&, int)>& wait) {
        for (int i = 0; i < count; ++i) {
            Child child(user_, body);
            wait(child, i);
            child.kill_now();
            ASSERT_TRUE(was_killed(child));
        }
    }

    /// Lets the child pass so many more of its marks.
    static void pass(Child& child, int marks) {
        for (int i = 0; i < marks; ++i) {
            (void)child.channel().receive();
        }
    }

    const Node node_;
    const Identity user_{fresh_user(), limit, {}};
    std::uint64_t bytes_ = 0;

  private:
    std::uint64_t regions_ = 0;
    std::uint64_t available_ = 0;
};

hcamem_mapping alternate(int i) {
    return i % 2 == 0 ? HCAMEM_MAPPING_PAGES : HCAMEM_MAPPING_HUGE;
}

} // namespace

TEST_F(Kill, R05_in_the_middle_of_allocation) {
    kill_again_and_again(
        kills(),
        [](Channel& channel) {
            const Node node;
            channel.send(0);
            for (int i = 0;; ++i) {
                const Region region(node, limit - page_size,
                                    {alternate(i), HCAMEM_FORK_POLICY_ZERO});
            }
        },
        [&](Child& child, int) {
            pass(child, 1);
            // The charge comes first, so that the child is obtaining memory from here on.
            ASSERT_TRUE(eventually([&] { return node_.total() > bytes_; }));
        });
}

TEST_F(Kill, R05_in_the_middle_of_registration) {
    kill_again_and_again(
        kills(),
        [](Channel& channel) {
            const Node node;
            const Context context;
            const Pd pd(context);
            const Region region(node, 8 * MiB);
            for (;;) {
                channel.send(0);
                const Mr mr = Mr::of_region(pd, node, region.data(), region.size());
                channel.send(1);
            }
        },
        [&](Child& child, int i) { pass(child, 1 + i % 5); });
}

TEST_F(Kill, R05_in_the_middle_of_live_traffic) {
    kill_again_and_again(
        kills(),
        [](Channel& channel) {
            const Node node;
            const Context context;
            const Pd pd(context);
            const Region region(node, huge_size);
            const Mr mr = Mr::of_region(pd, node, region.data(), region.size());
            const Loopback link(context, pd);
            const std::size_t half = 256 * KiB;
            channel.send(0);
            for (std::uint64_t i = 0;; ++i) {
                // Several large messages are under way at any time.
                link.post_receive({region.data() + half, half, &mr});
                link.post_receive({region.data() + half, half, &mr});
                link.post_send({region.data(), half, &mr});
                link.post_send({region.data(), half, &mr});
                for (int n = 0; n < 2; ++n) {
                    require(link.left_completion().status == IBV_WC_SUCCESS, "sent");
                    require(link.right_completion().status == IBV_WC_SUCCESS, "received");
                    channel.send(1);
                }
            }
        },
        [&](Child& child, int i) { pass(child, 1 + i % 3); });
}

TEST_F(Kill, R05_while_others_hold_its_memory) {
    // A dma-buf, a share child and a pipe survive their creator, and end with their holder.
    for (int i = 0; i < 10; ++i) {
        UniqueFd dma_buf;
        Child child(user_, [i](Channel& channel) {
            const Node node;
            const Region region(node, 5 * MiB, {alternate(i), HCAMEM_FORK_POLICY_SHARE});
            std::memset(region.data(), 0x17, region.size());
            channel.send_fd(node.export_range(region.data(), region.size()).get());
            const pid_t pid = fork();
            if (pid == 0) {
                _exit(region.data()[MiB] == 0x17 ? 0 : 1);
            }
            channel.send(pid);
            (void)channel.receive();
        });
        dma_buf = child.channel().receive_fd();
        (void)child.channel().receive();
        child.kill_now();
        child.wait();
        EXPECT_EQ(node_.total() - bytes_, 5 * MiB);
        dma_buf.reset();
        // The share child may not have run yet.
        ASSERT_TRUE(eventually([&] { return node_.total() == bytes_; }));
    }
}

// hpc/xpmem#4, Mooncake PR#1620: the exit of a holder of much memory hung.
TEST_F(Kill, R05_a_holder_of_most_of_memory_is_gone_at_once) {
    const std::uint64_t most = node_.info().max_bytes / 10 * 9 / huge_size * huge_size;
    for (const hcamem_mapping mapping : {HCAMEM_MAPPING_PAGES, HCAMEM_MAPPING_HUGE}) {
        Child child([&](Channel& channel) {
            const Region region(Node(), most, {mapping, HCAMEM_FORK_POLICY_ZERO});
            for (std::size_t at = 0; at < region.size(); at += huge_size) {
                region.data()[at] = 1;
            }
            channel.send(0);
            (void)channel.receive();
        });
        pass(child, 1);
        child.kill_now();
        child.wait();
        EXPECT_TRUE(eventually([&] { return node_.total() == bytes_; }));
    }
}
