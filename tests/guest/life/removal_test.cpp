// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The HCA is taken away under everything that can be held: whoever waits is told, memory
// stays what it is until it is released, and the HCA that comes back works.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "../importer/importer.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/hca.hpp"
#include "support/killed.hpp"
#include "support/node.hpp"
#include "support/rdma.hpp"

using namespace support;

namespace {

constexpr std::size_t region_bytes = 2 * huge_size + 3 * page_size;

/// Whether an HCA does what it is for, through memory of its own node.
void expect_working(const std::string& ibdev) {
    const Node node(ibdev);
    const Context context(ibdev);
    const Pd pd(context);
    const Region from(node, huge_size);
    const Region to(node, huge_size);
    const Mr from_mr = Mr::of_region(pd, node, from.data(), from.size());
    const Mr to_mr = Mr::of_region(pd, node, to.data(), to.size());
    fill(from.bytes(), 1);
    const Loopback link(context, pd);
    EXPECT_EQ(link.write({from.data(), from.size(), &from_mr}, {to.data(), to.size(), &to_mr}),
              IBV_WC_SUCCESS);
    EXPECT_TRUE(holds(to.bytes(), 1));
}

bool told_gone(const Node& node) {
    hcamem_event event{};
    return read(node.fd(), &event, sizeof event) == static_cast<ssize_t>(sizeof event) &&
           event.type == HCAMEM_EVENT_GONE;
}

class Removal : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override { before_ = watch_.total(); }
    void TearDown() override {
        EXPECT_TRUE(eventually([&] { return watch_.total() == before_; })) << watch_.total();
        for (const std::string& name : Node::names()) {
            // After the last byte, the region itself.
            EXPECT_TRUE(eventually([&] {
                return read_number("/sys/class/hcamem/" + name + "/regions") == 0;
            })) << name;
        }
        expect_working(hca());
    }
    static std::string hca() { return GetParam(); }
    static std::string other() { return hca() == "rxe0" ? "rxe1" : "rxe0"; }

    /// The other HCA's node, which sees what all hold.
    const Node watch_{other()};

  private:
    std::uint64_t before_ = 0;
};

INSTANTIATE_TEST_SUITE_P(, Removal, testing::Values("rxe0", "rxe1"),
                         [](const auto& info) { return std::string(info.param); });

/// Traffic on the HCA until the driver says that it is gone, and some more.
void traffic(const std::string& ibdev, Channel& channel, bool until_killed) {
    const Node node(ibdev, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    const Context context(ibdev);
    const Pd pd(context);
    const Region from(node, huge_size);
    const Region to(node, huge_size);
    const Mr from_mr = Mr::of_region(pd, node, from.data(), from.size());
    const Mr to_mr = Mr::of_region(pd, node, to.data(), to.size());
    const Loopback link(context, pd);
    channel.send(0);
    int after = 0;
    for (unsigned round = 0; after < 20 || until_killed; ++round) {
        if (after == 0 && told_gone(node)) {
            channel.send(1);
            after = 1;
        }
        after += after > 0 ? 1 : 0;
        const std::size_t length = 64 * KiB;
        fill(from.bytes().first(length), round);
        require(link.write({from.data(), length, &from_mr}, {to.data(), length, &to_mr}) ==
                    IBV_WC_SUCCESS,
                "the HCA serves who has it open");
        require(holds(to.bytes().first(length), round), "and every byte arrives");
    }
    hcamem_export request{};
    request.addr = reinterpret_cast<std::uintptr_t>(to.data());
    request.length = page_size;
    require(node.try_export(request) == ENODEV, "no export any more");
}

} // namespace

TEST_P(Removal, everything_held_outlives_the_hca) {
    Hca subject(hca());
    const Importer importer;
    auto node = std::make_unique<Node>(hca());
    std::vector<Region> regions;
    std::vector<UniqueFd> dma_bufs;
    for (const hcamem_mapping mapping : {HCAMEM_MAPPING_PAGES, HCAMEM_MAPPING_HUGE}) {
        for (const hcamem_fork fork_policy : {HCAMEM_FORK_POLICY_ZERO, HCAMEM_FORK_POLICY_SHARE}) {
            regions.emplace_back(*node, region_bytes, RegionKind{mapping, fork_policy});
            dma_bufs.push_back(node->export_range(regions.back().data(), regions.back().size()));
            fill(regions.back().bytes(), static_cast<unsigned>(regions.size()));
        }
    }
    hcamem_create waiting = create_request(page_size);
    ASSERT_EQ(node->try_create(waiting), 0);
    auto device = std::make_unique<Attachment>();
    ASSERT_EQ(device->attach(dma_bufs[1].get(), IMPORTER_DYNAMIC), 0);
    ASSERT_EQ(device->map(), 0);

    subject.remove();

    // What lies there, by every way there is to it.
    for (unsigned i = 0; i < regions.size(); ++i) {
        EXPECT_TRUE(holds(regions[i].bytes(), i + 1));
        void* mapped = mmap(nullptr, region_bytes, PROT_READ, MAP_SHARED, dma_bufs[i].get(), 0);
        ASSERT_NE(mapped, MAP_FAILED);
        EXPECT_TRUE(holds({static_cast<unsigned char*>(mapped), region_bytes}, i + 1));
        munmap(mapped, region_bytes);
    }
    std::vector<unsigned char> message(3 * page_size);
    fill(message, 9);
    ASSERT_EQ(device->write(IMPORTER_TABLE, page_size, message), 0);
    EXPECT_TRUE(holds(regions[1].bytes().subspan(page_size, message.size()), 9));
    Attachment late;
    EXPECT_EQ(late.attach(dma_bufs[2].get(), IMPORTER_STATIC), 0) << "another device's business";
    EXPECT_EQ(late.map(), 0);
    late.close();
    EXPECT_TRUE(succeeds_in_child({}, [&](Channel&) {
        require(all_equal(regions[0].bytes(), 0), "a child finds zeros");
        require(holds(regions[3].bytes(), 4), "or what is shared with it");
    }));

    // A region created in time can still be mapped; nothing new is handed out.
    void* mapped = mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, node->fd(),
                        static_cast<off_t>(waiting.offset));
    ASSERT_NE(mapped, MAP_FAILED);
    EXPECT_TRUE(all_equal({static_cast<unsigned char*>(mapped), page_size}, 0));
    munmap(mapped, page_size);
    EXPECT_EQ(Region::attempt(*node, page_size), ENODEV);
    EXPECT_EQ(mmap(nullptr, page_size, PROT_READ, MAP_SHARED, node->fd(), 0), MAP_FAILED);
    EXPECT_EQ(errno, ENODEV);
    hcamem_export request{};
    request.addr = reinterpret_cast<std::uintptr_t>(regions[0].data());
    request.length = page_size;
    EXPECT_EQ(node->try_export(request), ENODEV);
    EXPECT_EQ(node->info().gone, 1U);
    EXPECT_EQ(node->info().node_bytes, 4 * region_bytes) << "still charged";

    // The HCA that comes back is another one.
    subject.add();
    expect_working(hca());
    EXPECT_EQ(Node(hca()).info().node_bytes, 0U);
    EXPECT_EQ(Region::attempt(*node, page_size), ENODEV);
    node.reset();
    for (unsigned i = 0; i < regions.size(); ++i) {
        EXPECT_TRUE(i == 1 || holds(regions[i].bytes(), i + 1));
    }
    regions.clear();
    dma_bufs.clear();
    EXPECT_TRUE(eventually([&] { return watch_.total() == region_bytes; }))
        << watch_.total() << ", not what the importer has attached";
    std::vector<unsigned char> seen(message.size());
    ASSERT_EQ(device->read(IMPORTER_TABLE, page_size, seen), 0);
    EXPECT_EQ(seen, message);
    device.reset();
}

TEST_P(Removal, whoever_waits_is_told) {
    Hca subject(hca());
    const Node reading(hca());
    const Node polling(hca());
    const Node untouched(other());
    auto reader = std::async(std::launch::async, [&] {
        hcamem_event event{};
        const ssize_t got = read(reading.fd(), &event, sizeof event);
        return got == static_cast<ssize_t>(sizeof event) ? static_cast<int>(event.type) : -errno;
    });
    auto poller = std::async(std::launch::async, [&] {
        pollfd watch{polling.fd(), POLLIN, 0};
        return poll(&watch, 1, -1) == 1 ? watch.revents : -1;
    });
    const UniqueFd epoll(must(epoll_create1(EPOLL_CLOEXEC), "epoll"));
    epoll_event interest{};
    interest.events = EPOLLIN | EPOLLET;
    must(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, polling.fd(), &interest), "epoll_ctl");
    Child elsewhere([&](Channel& channel) {
        channel.send(0);
        channel.send(told_gone(reading) ? 1 : 0);
    });
    (void)elsewhere.channel().receive();
    // Both sleep in the driver.
    ASSERT_TRUE(eventually([&] {
        return read_text("/proc/" + std::to_string(elsewhere.pid()) + "/stat").find(") S ") !=
               std::string::npos;
    }));

    subject.remove();

    EXPECT_EQ(poller.get(), POLLIN | POLLHUP);
    epoll_event told{};
    ASSERT_EQ(epoll_wait(epoll.get(), &told, 1, 0), 1);
    EXPECT_EQ(told.events, static_cast<std::uint32_t>(EPOLLIN | EPOLLHUP));
    // Of the two that read the same file one gets the event; the other's read ends with 0.
    const int first = reader.get();
    const auto second = elsewhere.channel().receive();
    EXPECT_TRUE((first == HCAMEM_EVENT_GONE && second == 0) || (first == 0 && second == 1))
        << first << ' ' << second;
    pollfd watch{untouched.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&watch, 1, 0), 0) << "the other HCA is not concerned";
}

// Soft-RoCE waits for who has it open before it goes, so that traffic goes on for a while
// on an HCA whose node is gone.
TEST_P(Removal, R06_traffic_goes_on_until_it_ends) {
    Hca subject(hca());
    Child sender([](Channel& channel) { traffic(hca(), channel, false); });
    ASSERT_EQ(sender.channel().receive(), 0);
    auto removal = std::async(std::launch::async, [&] { subject.remove(); });
    EXPECT_EQ(sender.channel().receive(), 1);
    EXPECT_TRUE(eventually([] { return !Node::name_of(hca()).has_value(); }));
    const int status = sender.wait();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    removal.get();
    subject.add();
}

TEST_P(Removal, R05_traffic_is_killed_while_the_hca_goes) {
    for (int i = 0; i < 2; ++i) {
        Hca subject(hca());
        Child sender([](Channel& channel) { traffic(hca(), channel, true); });
        ASSERT_EQ(sender.channel().receive(), 0);
        auto removal = std::async(std::launch::async, [&] { subject.remove(); });
        EXPECT_EQ(sender.channel().receive(), 1);
        sender.kill_now();
        EXPECT_TRUE(was_killed(sender));
        removal.get();
        subject.add();
    }
}

// One HCA comes and goes, the other is renamed again and again, and two processes use
// whatever nodes they find.
TEST(RemovalAndRename, users_find_a_node_that_works_or_none) {
    const auto may_fail = [](int error) {
        return error == ENOENT || error == ENXIO || error == ENODEV || error == ENODATA;
    };
    const auto use_all = [&](Channel& channel) {
        channel.send(0);
        for (unsigned round = 0;; ++round) {
            for (const std::string& name : Node::names()) {
                const UniqueFd fd(open(("/dev/infiniband/" + name).c_str(), O_RDWR | O_CLOEXEC));
                if (!fd.valid()) {
                    require(may_fail(errno), std::string("open: ") + std::strerror(errno));
                    continue;
                }
                const Node node{UniqueFd(dup(fd.get()))};
                try {
                    (void)Node::ibdev_of(name);
                    const Region region(node, (1 + round % 3) * page_size);
                    fill(region.bytes(), round);
                    const UniqueFd dma_buf = node.export_range(region.data(), region.size());
                    require(holds(region.bytes(), round), "bytes");
                } catch (const std::system_error& error) {
                    require(may_fail(error.code().value()), error.what());
                }
            }
        }
    };
    Hca subject("rxe1");
    Child one(use_all);
    Child two(use_all);
    (void)one.channel().receive();
    (void)two.channel().receive();
    for (int i = 0; i < 4; ++i) {
        must_shell("rdma dev set rxe0 name renamed0");
        subject.remove();
        must_shell("rdma dev set renamed0 name rxe0");
        subject.add();
    }
    for (Child* user : {&one, &two}) {
        user->kill_now();
        EXPECT_TRUE(was_killed(*user)) << "found something wrong";
    }
    EXPECT_EQ(Node::names().size(), 2U);
    expect_working("rxe0");
    expect_working("rxe1");
}
