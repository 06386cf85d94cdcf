// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A shared heap in device memory: two processes register it and send from it, one is killed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <hcamem/shared_heap.hpp>

#include <boost/container/vector.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>

#include "pool_fixture.hpp"
#include "support/child.hpp"
#include "support/killed.hpp"
#include "support/page_pins.hpp"

using namespace support;
using hcamem::shared_access;
using hcamem::shared_heap;

namespace {

using Vector = boost::container::vector<unsigned char, hcamem::shared_allocator<unsigned char>>;

constexpr std::size_t heap_size = 8 * MiB;
constexpr std::size_t message = 64 * KiB + 100;

shared_heap device_heap(shared_access access = shared_access::local, std::uint32_t flags = 0) {
    hcamem::options options = device_options();
    options.flags |= flags;
    return shared_heap(heap_size, options, access);
}

std::span<unsigned char> bytes_of(Vector& vector) {
    return {vector.data(), vector.size()};
}

support::Place place(const hcamem::binding& binding, Vector& vector) {
    return ::place(binding, vector.data(), vector.size());
}

/// One process's registration of the heap, and two connected queue pairs.
struct AttachedHeap {
    explicit AttachedHeap(const shared_heap& heap, int access = IBV_ACCESS_LOCAL_WRITE)
        : binding(heap.attach(pd.get(), access)) {}

    const Context context;
    const Pd pd{context};
    const hcamem::binding binding;
    const Loopback link{context, pd};

    /// Sends one container's bytes into the other's.
    void send(Vector& from, Vector& to, unsigned seed) const {
        fill(bytes_of(from), seed);
        link.post_receive(place(binding, to));
        require(link.send(place(binding, from)) == IBV_WC_SUCCESS, "send");
        require(holds(bytes_of(to), seed), "what was sent arrived");
    }
};

Vector* make_vector(shared_heap& heap, const char* name) {
    return heap.construct<Vector>(name, message, heap.get_allocator<unsigned char>());
}

/// A process that joins by a socket, with nothing inherited.
Child joining(const std::function<void(shared_heap&, Channel&)>& body) {
    return Child([body](Channel& channel) {
        shared_heap heap = shared_heap::receive(channel.fd());
        body(heap, channel);
    });
}

} // namespace

TEST(SharedHeap, takes_device_memory_and_the_path_that_this_soft_roce_has) {
    const Node node;
    const std::uint64_t before = node.total();
    {
        shared_heap heap = device_heap();
        EXPECT_EQ(heap.source(), HCAMEM_DEVICE);
        EXPECT_EQ(node.total() - before, heap_size);
        const Context context;
        const Pd pd(context);
        const hcamem::binding binding = heap.attach(pd.get());
        void* block = heap.allocate(100);
        const hcamem_key key = binding.key(block);
        EXPECT_EQ(key.path, expected_path());
        EXPECT_EQ(key.access, static_cast<unsigned>(IBV_ACCESS_LOCAL_WRITE));
        EXPECT_NE(key.lkey, 0U);
        EXPECT_NE(maps_line(block).find("rw-s"), std::string::npos) << maps_line(block);
    }
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

namespace {

void send_from_two_processes(std::uint32_t flags) {
    // Joined by its descriptors: made before the heap, so nothing is inherited.
    Child other = joining([](shared_heap& heap, Channel& channel) {
        const AttachedHeap own(heap);
        Vector* const from = heap.find<Vector>("from");
        Vector* const to = heap.find<Vector>("to");
        require(holds(bytes_of(*to), 1), "what the other process received");
        own.send(*from, *to, 2);
        Vector* const mine = make_vector(heap, "of the other");
        own.send(*to, *mine, 3);
        channel.send(0);
        (void)channel.receive();
    });
    shared_heap heap = device_heap(shared_access::local, flags);
    const AttachedHeap own(heap);
    Vector* const from = make_vector(heap, "from");
    Vector* const to = make_vector(heap, "to");
    own.send(*from, *to, 1);
    heap.send(other.channel().fd());
    (void)other.channel().receive();
    EXPECT_TRUE(holds(bytes_of(*from), 2));
    EXPECT_TRUE(holds(bytes_of(*heap.find<Vector>("of the other")), 3));
    own.send(*heap.find<Vector>("of the other"), *from, 4);
    other.channel().send(0);
    EXPECT_EQ(other.wait(), 0);
    own.send(*from, *to, 5);
}

} // namespace

TEST(SharedHeap, containers_of_two_processes_are_sent_as_they_are) {
    send_from_two_processes(0);
}

// Where huge mappings cannot be pinned, this is what asks for them.
TEST(SharedHeap, R02_registered_by_dma_buf_or_not_at_all) {
    if (rxe_imports_dma_bufs()) {
        send_from_two_processes(HCAMEM_OPT_DMABUF_ONLY);
        return;
    }
    const Context context;
    const Pd pd(context);
    const shared_heap heap = device_heap(shared_access::local, HCAMEM_OPT_DMABUF_ONLY);
    try {
        const hcamem::binding binding = heap.attach(pd.get());
        FAIL() << "registered without a dma-buf";
    } catch (const hcamem::error& error) {
        EXPECT_EQ(error.code().value(), EOPNOTSUPP) << error.what();
    }
}

TEST(SharedHeap, a_forked_child_registers_for_itself) {
    shared_heap heap = device_heap();
    const AttachedHeap own(heap);
    Vector* const from = make_vector(heap, "from");
    Vector* const to = make_vector(heap, "to");
    EXPECT_TRUE(succeeds_in_child({}, [&](Channel&) {
        require(own.binding.lkey(from->data()) == 0, "no key of the parent's");
        const AttachedHeap mine(heap);
        mine.send(*from, *to, 7);
    }));
    EXPECT_TRUE(holds(bytes_of(*to), 7));
    own.send(*from, *to, 8);
}

TEST(SharedHeap, one_process_writes_into_the_container_of_another) {
    shared_heap heap = device_heap(shared_access::remote);
    Vector* const from = make_vector(heap, "from");
    Vector* const to = make_vector(heap, "to");
    fill(bytes_of(*from), 9);
    Child writer([&](Channel& channel) {
        const Context context;
        const Pd pd(context);
        const hcamem::binding binding = heap.attach(pd.get());
        const Endpoint endpoint(context, pd);
        channel.send(endpoint.number());
        endpoint.connect(static_cast<std::uint32_t>(channel.receive()), Endpoint::Fate::lives);
        const auto address = reinterpret_cast<const void*>(channel.receive());
        const auto rkey = static_cast<std::uint32_t>(channel.receive());
        endpoint.post_write(place(binding, *from), {address, message, 0, rkey});
        require(endpoint.completion().status == IBV_WC_SUCCESS, "RDMA write");
        channel.send(0);
    });
    const Context context;
    const Pd pd(context);
    const hcamem::binding binding = heap.attach(pd.get(), remote_access);
    const Endpoint endpoint(context, pd);
    endpoint.connect(static_cast<std::uint32_t>(writer.channel().receive()), Endpoint::Fate::lives);
    writer.channel().send(endpoint.number());
    writer.channel().send(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to->data())));
    writer.channel().send(binding.rkey(to->data()));
    (void)writer.channel().receive();
    EXPECT_TRUE(holds(bytes_of(*to), 9));
    EXPECT_EQ(writer.wait(), 0);
}

TEST(SharedHeap, remote_access_must_have_been_allowed) {
    const Context context;
    const Pd pd(context);
    const shared_heap heap = device_heap();
    try {
        const hcamem::binding binding = heap.attach(pd.get(), remote_access);
        FAIL() << "registered for remote access";
    } catch (const hcamem::error& error) {
        EXPECT_EQ(error.code().value(), EPERM);
        EXPECT_NE(std::string(error.what()).find("HCAMEM_SHARED_REMOTE"), std::string::npos)
            << error.what();
    }
}

TEST(SharedHeap, R02_no_page_of_it_is_pinned) {
    if (!rxe_imports_dma_bufs()) {
        GTEST_SKIP() << "this soft-RoCE does not import dma-bufs; ibv_reg_mr() pins";
    }
    PagePins pins;
    shared_heap heap = device_heap();
    const AttachedHeap own(heap);
    own.send(*make_vector(heap, "from"), *make_vector(heap, "to"), 1);
    const auto begin = reinterpret_cast<std::uintptr_t>(hcamem_shared_address(heap.c_handle()));
    EXPECT_TRUE(
        touching(pins.calls(), std::vector{AddressRange{begin, begin + heap_size}}).empty());
}

// A futex in the driver's pages cannot sleep: with the lock there, a waiter would abort.
TEST(SharedHeap, processes_wait_for_its_lock) {
    shared_heap heap = device_heap();
    int* const counter = heap.construct<int>("counter", 0);
    const auto count = [&] {
        for (int i = 0; i < 300; ++i) {
            const auto guard = heap.lock();
            const int before = *counter;
            if (i % 30 == 0) {
                usleep(1000); // somebody else wants it meanwhile
            }
            *counter = before + 1;
        }
    };
    Child first([&](Channel&) { count(); });
    Child second([&](Channel&) { count(); });
    count();
    EXPECT_EQ(first.wait(), 0);
    EXPECT_EQ(second.wait(), 0);
    EXPECT_EQ(*counter, 900);
}

TEST(SharedHeapKill, R05_with_the_lock_the_others_are_told_and_the_memory_goes) {
    const Node node;
    const std::uint64_t before = node.total();
    auto told_after = std::chrono::steady_clock::duration::max();
    for (int round = 0; round < 5; ++round) {
        shared_heap heap = device_heap();
        const AttachedHeap own(heap);
        Vector* const from = make_vector(heap, "from");
        Vector* const to = make_vector(heap, "to");
        Child victim([&](Channel& channel) {
            const AttachedHeap mine(heap);
            mine.send(*from, *to, 1);
            const auto guard = heap.lock();
            static_cast<void>(heap.allocate(MiB));
            channel.send(0);
            (void)channel.receive();
        });
        (void)victim.channel().receive();
        Child waiter([&](Channel& channel) {
            channel.send(0);
            try {
                static_cast<void>(heap.lock());
                require(false, "got the lock of the dead");
            } catch (const hcamem::error& error) {
                require(error.code().value() == ENOTRECOVERABLE, error.what());
            }
        });
        (void)waiter.channel().receive();
        usleep(100000);
        const auto death = std::chrono::steady_clock::now();
        victim.kill_now();
        EXPECT_EQ(waiter.wait(), 0);
        told_after = std::min(told_after, std::chrono::steady_clock::now() - death);
        EXPECT_TRUE(was_killed(victim));
        EXPECT_TRUE(heap.poisoned());
        // What is registered goes on working.
        own.send(*from, *to, 2);
    }
    // The fastest, since others may have had the processors.
    EXPECT_LT(told_after, std::chrono::seconds(1));
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

TEST(SharedHeapKill, R05_without_the_lock_the_others_go_on) {
    const Node node;
    const std::uint64_t before = node.total();
    {
        shared_heap heap = device_heap();
        const AttachedHeap own(heap);
        Vector* const from = make_vector(heap, "from");
        Vector* const to = make_vector(heap, "to");
        for (unsigned round = 0; round < 3; ++round) {
            Child victim([&](Channel& channel) {
                const AttachedHeap mine(heap);
                for (unsigned n = 0;; ++n) {
                    mine.send(*from, *to, n);
                    channel.send(0);
                }
            });
            for (unsigned marks = 0; marks <= round; ++marks) {
                (void)victim.channel().receive();
            }
            victim.kill_now();
            EXPECT_TRUE(was_killed(victim));
            EXPECT_FALSE(heap.poisoned());
            own.send(*from, *to, 100 + round);
            heap.deallocate(heap.allocate(MiB));
        }
        EXPECT_TRUE(heap.segment()->check_sanity());
    }
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

TEST(SharedHeapKill, R04_its_memory_stays_charged_to_who_made_it_while_another_has_it) {
    const Node node;
    const std::uint64_t before = node.total();
    const Identity user{fresh_user(), rlim_t{heap_size}, {}};
    Child other = joining([](shared_heap& heap, Channel& channel) {
        std::memset(heap.allocate(MiB), 1, MiB);
        channel.send(0);
        (void)channel.receive();
        heap.deallocate(heap.allocate(MiB));
    });
    Child maker(user, [&](Channel&) {
        const shared_heap heap = device_heap();
        heap.send(other.channel().fd());
    });
    EXPECT_EQ(maker.wait(), 0);
    (void)other.channel().receive();
    EXPECT_EQ(node.total() - before, heap_size);
    EXPECT_EQ(value_from_child(user, [] { return Region::attempt(Node(), page_size); }), EAGAIN);
    other.channel().send(0);
    EXPECT_EQ(other.wait(), 0);
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
    EXPECT_EQ(value_from_child(user, [] { return Region::attempt(Node(), heap_size); }), 0);
}
