// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Forking while the HCA writes: the parent's addresses and the HCA's pages stay the same.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>

#include "kinds.hpp"
#include "support/child.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"
#include "support/rdma.hpp"

using namespace support;

namespace {

/// A receiver's region and its peer's, registered in one protection domain.
class ForkRdma : public MappingModes {
  protected:
    void SetUp() override {
        if (GetParam() == HCAMEM_MAPPING_HUGE && !rxe_imports_dma_bufs() && kernel() != "6.1") {
            GTEST_SKIP() << "stock soft-RoCE has no way to register a huge mapping on " << kernel();
        }
        // A huge mapping can be pinned on 6.1 only where it was touched already.
        std::memset(ours_.data(), 0, ours_.size());
        std::memset(peers_.data(), 0, peers_.size());
        ours_mr_ = Mr::of_region(pd_, node_, ours_.data(), ours_.size());
        peers_mr_ = Mr::of_region(pd_, node_, peers_.data(), peers_.size());
    }

    Place ours(std::size_t at, std::size_t length) const {
        return {ours_.data() + at, length, &ours_mr_};
    }
    Place peers(std::size_t at, std::size_t length) const {
        return {peers_.data() + at, length, &peers_mr_};
    }
    /// The peer sends a message filled with this seed; true if it completed on both sides.
    bool peer_sends(std::size_t length, unsigned seed) {
        fill({peers_.data(), length}, seed);
        return link_.send(peers(0, length)) == IBV_WC_SUCCESS;
    }

    const Node node_;
    const Context context_;
    const Pd pd_{context_};
    const Region ours_{node_, huge_size, kind()};
    const Region peers_{node_, huge_size, kind()};
    Mr ours_mr_;
    Mr peers_mr_;
    const Loopback link_{context_, pd_};
};

INSTANTIATE_TEST_SUITE_P(, ForkRdma, both_mappings, mapping_name);

} // namespace

TEST_P(ForkRdma, R10_parent_sees_what_arrives_after_fork_and_exec) {
    const std::size_t length = 3 * page_size;
    unsigned char* buffer = ours_.data() + 100;
    unsigned round = 1;
    const auto expect_arrival = [&](const char* what) {
        EXPECT_TRUE(peer_sends(length, round)) << what;
        EXPECT_TRUE(holds({buffer, length}, round)) << what;
        ++round;
    };
    for (int i = 0; i < 4; ++i) {
        link_.post_receive(ours(100, length));
    }

    Child sleeper([](Channel& channel) { (void)channel.receive(); });
    std::memset(buffer, 0x11, length); // would break copy-on-write away from the HCA's page
    expect_arrival("a child lives");

    EXPECT_EQ(std::system("true"), 0);
    std::memset(buffer, 0x22, length);
    expect_arrival("after system()");

    const pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/true", "true", nullptr);
        _exit(127);
    }
    std::memset(buffer, 0x33, length);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    expect_arrival("after fork and exec");

    Child writer([&](Channel&) { std::memset(ours_.data(), 0xee, ours_.size()); });
    EXPECT_EQ(writer.wait(), 0);
    std::memset(buffer, 0x44, length);
    expect_arrival("after a child that wrote everywhere");

    sleeper.channel().send(0);
    EXPECT_EQ(sleeper.wait(), 0);
}

TEST_P(ForkRdma, R10_parent_sends_what_it_wrote_after_the_fork) {
    const std::size_t length = 2 * page_size;
    fill({ours_.data(), length}, 1);
    Child sleeper([](Channel& channel) { (void)channel.receive(); });
    fill({ours_.data(), length}, 2);
    EXPECT_EQ(link_.write(ours(0, length), peers(page_size, length)), IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({peers_.data() + page_size, length}, 2));
}

// The server story: two receives are posted, the first arrives, the server forks a
// worker, the second arrives.
TEST_P(ForkRdma, R11_server_forks_a_worker_between_two_messages) {
    const std::size_t length = page_size + 500;
    const std::size_t second = 8 * page_size;
    link_.post_receive(ours(0, length), 1);
    link_.post_receive(ours(second, length), 2);

    ASSERT_TRUE(peer_sends(length, 1));
    EXPECT_TRUE(holds({ours_.data(), length}, 1));

    Child worker([&](Channel& channel) {
        require(all_equal(ours_.bytes(), 0), "the worker sees the server's buffers");
        std::memset(ours_.data(), 0xee, ours_.size());
        channel.send(0);
        (void)channel.receive();
        require(all_equal(ours_.bytes(), 0xee), "a message arrived in the worker");
    });
    (void)worker.channel().receive();
    ours_.data()[second] = 0x55; // the server touches the buffer while the worker lives

    ASSERT_TRUE(peer_sends(length, 2));
    EXPECT_TRUE(holds({ours_.data() + second, length}, 2)) << "the server misses the message";
    EXPECT_TRUE(holds({ours_.data(), length}, 1));
    worker.channel().send(0);
    EXPECT_EQ(worker.wait(), 0);
}

TEST_P(ForkRdma, R12_a_childs_writes_never_reach_the_wire) {
    for (const int advice : {0, MADV_KEEPONFORK, MADV_DOFORK}) {
        if (advice != 0) {
            madvise(ours_.data(), ours_.size(), advice);
        }
        fill({ours_.data(), page_size}, 7);
        Child child([&](Channel& channel) {
            std::memset(ours_.data(), 0xee, ours_.size());
            channel.send(0);
            (void)channel.receive();
        });
        (void)child.channel().receive();
        ASSERT_EQ(link_.write(ours(0, page_size), peers(0, page_size)), IBV_WC_SUCCESS);
        EXPECT_TRUE(holds({peers_.data(), page_size}, 7)) << "advice " << advice;
        child.kill_now();
        child.wait();
        ASSERT_EQ(link_.read(peers(page_size, page_size), ours(0, page_size)), IBV_WC_SUCCESS);
        EXPECT_TRUE(holds({peers_.data() + page_size, page_size}, 7)) << "advice " << advice;
    }
}

TEST_P(ForkRdma, R12_a_child_writes_next_to_a_registration_that_ends_inside_a_page) {
    constexpr std::size_t start = 100;
    constexpr std::size_t length = page_size + 1000;
    const std::size_t neighbours = start + length;
    const Mr odd = Mr::of_region(pd_, node_, ours_.data() + start, length);
    fill({ours_.data(), 2 * page_size}, 3);
    Child child([&](Channel& channel) {
        // Bytes of the pages that the registration shares, and the page after them.
        std::memset(ours_.data(), 0xee, start);
        std::memset(ours_.data() + neighbours, 0xee, 3 * page_size - neighbours);
        channel.send(0);
        (void)channel.receive();
    });
    (void)child.channel().receive();
    fill({peers_.data(), length}, 4);
    ASSERT_EQ(link_.write(peers(0, length), {ours_.data() + start, length, &odd}), IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({ours_.data(), start}, 3));
    EXPECT_TRUE(holds({ours_.data() + start, length}, 4));
    EXPECT_TRUE(holds({ours_.data() + neighbours, 2 * page_size - neighbours}, 3, neighbours));
    child.kill_now();
    child.wait();
    EXPECT_TRUE(holds({ours_.data() + start, length}, 4));
}

TEST_P(ForkRdma, R13_child_starts_rdma_of_its_own) {
    fill({ours_.data(), page_size}, 1);
    EXPECT_TRUE(succeeds_in_child({}, [&](Channel&) {
        const Node node;
        const Context context;
        const Pd pd(context);
        const Region region(node, huge_size, kind());
        std::memset(region.data(), 0, region.size());
        const Mr mr = Mr::of_region(pd, node, region.data(), region.size());
        const Loopback link(context, pd);
        fill({region.data(), page_size}, 5);
        link.post_receive({region.data() + 2 * page_size, page_size, &mr});
        require(link.send({region.data(), page_size, &mr}) == IBV_WC_SUCCESS, "send");
        require(holds({region.data() + 2 * page_size, page_size}, 5), "received");
        require(link.write({region.data(), page_size, &mr},
                           {region.data() + 4 * page_size, page_size, &mr}) == IBV_WC_SUCCESS,
                "write");
        require(holds({region.data() + 4 * page_size, page_size}, 5), "written");
    }));
    EXPECT_TRUE(holds({ours_.data(), page_size}, 1));
    // And the parent goes on.
    ASSERT_EQ(link_.write(ours(0, page_size), peers(0, page_size)), IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({peers_.data(), page_size}, 1));
}
