// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// RDMA through pool memory: every operation, under page-pin probes, and across forks.
#include <gtest/gtest.h>

#include <hcamem/allocator.hpp>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "pool_fixture.hpp"
#include "support/child.hpp"
#include "support/killed.hpp"
#include "support/page_pins.hpp"

using namespace support;

namespace {

/// A pool that is attached, and two connected queue pairs.
struct AttachedPool {
    const Context context;
    const Pd pd{context};
    hcamem::pool pool = device_pool();
    const hcamem::binding binding = pool.attach(pd.get(), remote_access);
    const Loopback link{context, pd};

    /// The other side sends a message filled with this seed.
    bool send(const hcamem::buffer& from, unsigned seed) const {
        fill(bytes_of(from), seed);
        return link.send(place(binding, from)) == IBV_WC_SUCCESS;
    }
};

AddressRange slab_of(const void* block) {
    const auto address = reinterpret_cast<std::uintptr_t>(block) / huge_size * huge_size;
    return {address, address + huge_size};
}

void use_everything(const AttachedPool& setup, const hcamem::buffer& a, const hcamem::buffer& b) {
    setup.link.post_receive(place(setup.binding, b));
    ASSERT_TRUE(setup.send(a, 1));
    EXPECT_TRUE(holds(bytes_of(b), 1));
    fill(bytes_of(a), 2);
    ASSERT_EQ(setup.link.write(place(setup.binding, a), place(setup.binding, b)), IBV_WC_SUCCESS);
    EXPECT_TRUE(holds(bytes_of(b), 2));
    fill(bytes_of(b), 3);
    ASSERT_EQ(setup.link.read(place(setup.binding, a), place(setup.binding, b)), IBV_WC_SUCCESS);
    EXPECT_TRUE(holds(bytes_of(a), 3));
    auto* counter = reinterpret_cast<std::uint64_t*>(b.data());
    auto* old = reinterpret_cast<std::uint64_t*>(a.data());
    *counter = 40;
    ASSERT_EQ(
        setup.link.fetch_add(place(setup.binding, old, 8), place(setup.binding, counter, 8), 2),
        IBV_WC_SUCCESS);
    EXPECT_EQ(*old, 40U);
    ASSERT_EQ(setup.link.compare_swap(place(setup.binding, old, 8),
                                      place(setup.binding, counter, 8), 42, 7),
              IBV_WC_SUCCESS);
    EXPECT_EQ(*counter, 7U);
}

} // namespace

TEST(PoolRdma, carries_every_operation) {
    AttachedPool setup;
    for (const std::size_t size : {std::size_t{64}, std::size_t{4096}, 64 * KiB, MiB}) {
        const hcamem::buffer a = setup.pool.make_buffer(size);
        const hcamem::buffer b = setup.pool.make_buffer(size);
        use_everything(setup, a, b);
    }
}

TEST(PoolRdma, R02_no_page_of_the_pool_is_pinned) {
    if (!rxe_imports_dma_bufs()) {
        GTEST_SKIP() << "this soft-RoCE does not import dma-bufs; ibv_reg_mr() pins";
    }
    PagePins pins;
    std::vector<AddressRange> slabs;
    {
        AttachedPool setup;
        std::vector<hcamem::buffer> blocks;
        for (const std::size_t size : {std::size_t{100}, 64 * KiB, MiB, 3 * MiB}) {
            blocks.push_back(setup.pool.make_buffer(size));
            blocks.push_back(setup.pool.make_buffer(size));
            use_everything(setup, blocks[blocks.size() - 2], blocks.back());
        }
        for (const hcamem::buffer& block : blocks) {
            slabs.push_back(slab_of(block.data()));
            slabs.push_back(slab_of(block.data() + block.size() - 1));
        }
    }
    for (const PinCall& call : touching(pins.calls(), slabs)) {
        ADD_FAILURE() << call.function << " asked for " << std::hex << call.pages.begin << '-'
                      << call.pages.end;
    }

    // The same probes see a pool of ordinary memory being registered.
    const Context context;
    const Pd pd(context);
    hcamem::options options = device_options();
    options.source = HCAMEM_MEMORY;
    pins.clear();
    hcamem::pool pool(options);
    const hcamem::binding binding = pool.attach(pd.get());
    const hcamem::buffer buffer = pool.make_buffer(MiB);
    EXPECT_EQ(binding.key(buffer.data()).path, static_cast<unsigned>(HCAMEM_PATH_USER_PAGES));
    EXPECT_FALSE(touching(pins.calls(), std::vector{slab_of(buffer.data())}).empty());
}

TEST(PoolRdma, R10_parent_sees_what_arrives_after_fork_and_exec) {
    AttachedPool setup;
    const hcamem::buffer ours = setup.pool.make_buffer(5 * page_size + 100);
    const hcamem::buffer peers = setup.pool.make_buffer(ours.size());
    for (int i = 0; i < 3; ++i) {
        setup.link.post_receive(place(setup.binding, ours));
    }
    Child sleeper([](Channel& channel) { (void)channel.receive(); });
    std::memset(ours.data(), 0x11, ours.size());
    EXPECT_TRUE(setup.send(peers, 1));
    EXPECT_TRUE(holds(bytes_of(ours), 1)) << "while a child lives";

    EXPECT_EQ(std::system("true"), 0);
    std::memset(ours.data(), 0x22, ours.size());
    EXPECT_TRUE(setup.send(peers, 2));
    EXPECT_TRUE(holds(bytes_of(ours), 2)) << "after system()";

    Child writer([&](Channel&) { std::memset(ours.data(), 0xee, ours.size()); });
    EXPECT_EQ(writer.wait(), 0);
    EXPECT_TRUE(setup.send(peers, 3));
    EXPECT_TRUE(holds(bytes_of(ours), 3)) << "after a child that wrote";
    sleeper.channel().send(0);
    EXPECT_EQ(sleeper.wait(), 0);
}

TEST(PoolRdma, R11_server_forks_a_worker_between_two_messages) {
    AttachedPool setup;
    const hcamem::buffer first = setup.pool.make_buffer(1500);
    const hcamem::buffer second = setup.pool.make_buffer(1500);
    const hcamem::buffer peers = setup.pool.make_buffer(1500);
    setup.link.post_receive(place(setup.binding, first));
    setup.link.post_receive(place(setup.binding, second));
    ASSERT_TRUE(setup.send(peers, 1));
    Child worker([&](Channel& channel) {
        std::memset(second.data(), 0xee, second.size());
        channel.send(0);
        (void)channel.receive();
    });
    (void)worker.channel().receive();
    second.data()[0] = std::byte{0x55};
    ASSERT_TRUE(setup.send(peers, 2));
    EXPECT_TRUE(holds(bytes_of(first), 1));
    EXPECT_TRUE(holds(bytes_of(second), 2));
    worker.channel().send(0);
    EXPECT_EQ(worker.wait(), 0);
}

class PoolFork : public testing::TestWithParam<Spawn> {};
INSTANTIATE_TEST_SUITE_P(, PoolFork, testing::Values(Spawn::fork, Spawn::raw_clone),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST_P(PoolFork, R12_child_finds_zeros_and_a_closed_pool_and_harms_nobody) {
    AttachedPool setup;
    auto ours = std::make_unique<hcamem::buffer>(setup.pool, 3 * page_size);
    using Vector = std::vector<int, hcamem::allocator<int>>;
    auto container = std::make_unique<Vector>(10000, 42, hcamem::allocator<int>(setup.pool));
    const hcamem::buffer peers = setup.pool.make_buffer(ours->size());
    fill(bytes_of(*ours), 1);
    const bool harmless = succeeds_in_child(
        {},
        [&](Channel&) {
            require(all_equal(bytes_of(*ours), 0), "the child sees the parent's data");
            std::memset(ours->data(), 0xee, ours->size());
            require(setup.pool.closed(), "the pool is closed in the child");
            errno = 0;
            require(setup.pool.try_allocate(100) == nullptr && errno == ESTALE, "ESTALE");
            require(setup.binding.lkey(ours->data()) == 0, "no key in the child");
            ours.reset();
            container.reset();
            hcamem_pool_close(setup.pool.c_handle());
            hcamem_detach(setup.binding.c_handle());
        },
        GetParam());
    EXPECT_TRUE(harmless);
    EXPECT_TRUE(holds(bytes_of(*ours), 1));
    EXPECT_EQ(*container, Vector(10000, 42, hcamem::allocator<int>(setup.pool)));
    // The child gave nothing back that the HCA uses: traffic goes on with the same keys.
    ASSERT_EQ(setup.link.write(place(setup.binding, *ours), place(setup.binding, peers)),
              IBV_WC_SUCCESS);
    EXPECT_TRUE(holds(bytes_of(peers), 1));
    EXPECT_FALSE(setup.pool.closed());
}

TEST_P(PoolFork, R13_child_makes_a_pool_of_its_own_and_talks_rdma) {
    AttachedPool parent;
    const hcamem::buffer ours = parent.pool.make_buffer(page_size);
    fill(bytes_of(ours), 1);
    EXPECT_TRUE(succeeds_in_child(
        {},
        [&](Channel&) {
            AttachedPool own;
            const hcamem::buffer from = own.pool.make_buffer(10000);
            const hcamem::buffer to = own.pool.make_buffer(10000);
            own.link.post_receive(place(own.binding, to));
            require(own.send(from, 7), "send");
            require(holds(bytes_of(to), 7), "received");
        },
        GetParam()));
    EXPECT_TRUE(holds(bytes_of(ours), 1));
    const hcamem::buffer more = parent.pool.make_buffer(page_size);
    ASSERT_EQ(parent.link.write(place(parent.binding, ours), place(parent.binding, more)),
              IBV_WC_SUCCESS);
    EXPECT_TRUE(holds(bytes_of(more), 1));
}

TEST(PoolKill, R05_nothing_stays_behind) {
    const Node node;
    const std::uint64_t before = node.total();
    const Identity user{fresh_user(), rlim_t{128 * MiB}, {}};
    for (int i = 0; i < 10; ++i) {
        Child child(user, [](Channel& channel) {
            AttachedPool setup;
            for (unsigned n = 0;; ++n) {
                std::vector<hcamem::buffer> blocks;
                for (int b = 0; b < 4; ++b) {
                    blocks.push_back(setup.pool.make_buffer(700 * KiB));
                }
                setup.link.post_receive(place(setup.binding, blocks[1]));
                require(setup.send(blocks[0], n), "send");
                channel.send(0);
                setup.pool.trim();
            }
        });
        for (int marks = 0; marks <= i % 3; ++marks) {
            (void)child.channel().receive();
        }
        child.kill_now();
        ASSERT_TRUE(was_killed(child));
    }
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
    EXPECT_EQ(value_from_child(user, [] { return Region::attempt(Node(), 128 * MiB); }), 0);
}
