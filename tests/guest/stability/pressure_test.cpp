// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The kernel asks for memory back, says how much, and never takes what is in use.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>

#include "hog.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

constexpr int none_for = 3'000;        // ms; the driver looks ten times a second at most
constexpr int one_within = 3 * 60'000; // ms
constexpr std::uint64_t nearly_nothing = 96 * MiB;

/// The next event, or nothing after so long.
std::optional<hcamem_event> next_event(const Node& node, int timeout) {
    pollfd ready{node.fd(), POLLIN, 0};
    if (poll(&ready, 1, timeout) <= 0) {
        return std::nullopt;
    }
    hcamem_event event{};
    EXPECT_EQ(read(node.fd(), &event, sizeof event), static_cast<ssize_t>(sizeof event));
    return event;
}

/// Waits for an event of this type, whatever others come before it.
std::optional<hcamem_event> next_event_of(const Node& node, std::uint32_t type) {
    for (;;) {
        const auto event = next_event(node, one_within);
        if (!event.has_value() || event->type == type) {
            return event;
        }
    }
}

/// Sets the thresholds while it lives. Only what a test is about is in reach of the guest.
class Pressure : public testing::Test {
  protected:
    static ModuleParameter low(std::uint64_t bytes) { return {"low_bytes", bytes}; }
    static ModuleParameter critical(std::uint64_t bytes) { return {"critical_bytes", bytes}; }

    const ModuleParameter no_low_{"low_bytes", 1};
    const ModuleParameter no_critical_{"critical_bytes", 1};
    const ModuleParameter reserve_{"reserve_bytes", 1 * MiB};
    const Node node_{"rxe0", O_RDWR | O_CLOEXEC | O_NONBLOCK};
};

} // namespace

TEST_F(Pressure, R16_memory_that_the_driver_hands_out_counts_at_once) {
    const std::uint64_t threshold = meminfo("MemAvailable") - 128 * MiB;
    const auto low_bytes = low(threshold);
    EXPECT_FALSE(next_event(node_, none_for).has_value()) << "before there is a shortage";
    const Region region(node_, 256 * MiB);
    const auto event = next_event(node_, one_within);
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->type, HCAMEM_EVENT_LOW);
    EXPECT_EQ(event->wanted % page_size, 0u);
    // 128 MiB beyond the threshold; what else happens in the guest is far smaller.
    EXPECT_GT(event->wanted, 64 * MiB);
    EXPECT_LT(event->wanted, 192 * MiB);
}

TEST_F(Pressure, R16_giving_back_what_was_wanted_ends_the_shortage) {
    const std::uint64_t threshold = meminfo("MemAvailable") - 128 * MiB;
    const auto low_bytes = low(threshold);
    Region in_use(node_, 32 * MiB);
    fill(in_use.bytes(), 5);
    Region idle(node_, 256 * MiB);
    const auto event = next_event(node_, one_within);
    ASSERT_TRUE(event.has_value());
    const auto before = meminfo("MemAvailable");
    ASSERT_LE(event->wanted, idle.size());
    idle.unmap();
    EXPECT_TRUE(eventually([&] { return meminfo("MemAvailable") >= before + event->wanted; }))
        << before << " -> " << meminfo("MemAvailable") << ", wanted " << event->wanted;
    // One may have been raised again before the memory was back.
    EXPECT_TRUE(eventually([&] {
        EXPECT_EQ(Region::attempt(node_, page_size), 0); // has the module look
        return !next_event(node_, none_for).has_value();
    }));
    EXPECT_TRUE(holds(in_use.bytes(), 5));
}

TEST_F(Pressure, R16_reclaim_by_others_raises_it_and_memory_in_use_stays) {
    const auto low_bytes = low(400 * MiB);
    Region in_use(node_, 32 * MiB, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_ZERO});
    fill(in_use.bytes(), 5);
    Hog hog(nearly_nothing);
    const auto event = next_event_of(node_, HCAMEM_EVENT_LOW);
    ASSERT_TRUE(event.has_value()) << "no event under memory pressure";
    EXPECT_GT(event->wanted, 0u);
    EXPECT_LE(event->wanted, 400 * MiB);
    (void)hog.is_full(); // or the OOM killer took it
    hog.end();
    EXPECT_TRUE(holds(in_use.bytes(), 5));
}

TEST_F(Pressure, R16_critical_comes_before_the_oom_killer) {
    const auto low_bytes = low(400 * MiB);
    const auto critical_bytes = critical(200 * MiB);
    Hog hog(nearly_nothing);
    const auto event = next_event_of(node_, HCAMEM_EVENT_CRITICAL);
    ASSERT_TRUE(event.has_value()) << "no critical event";
    EXPECT_GE(event->wanted, 200 * MiB) << "up to the upper threshold";
    EXPECT_TRUE(hog.end()) << "the OOM killer acted first";
}

TEST_F(Pressure, R16_is_said_once_a_second_at_most) {
    const auto low_bytes = low(meminfo("MemAvailable") + 64 * MiB);
    const Region region(node_, MiB);
    ASSERT_TRUE(next_event(node_, one_within).has_value());
    // The shortage lasts and is looked at ten times a second: for 4 s, or for as long as so many
    // looks take here.
    const auto begin = std::chrono::steady_clock::now();
    std::chrono::steady_clock::duration passed{};
    unsigned looks = 0;
    int events = 0;
    while (passed < std::chrono::seconds(4) || looks <= 40) {
        EXPECT_EQ(Region::attempt(node_, page_size), 0);
        ++looks;
        events += next_event(node_, 20).has_value();
        passed = std::chrono::steady_clock::now() - begin;
    }
    EXPECT_LE(events, std::chrono::ceil<std::chrono::seconds>(passed).count() + 1);
    EXPECT_TRUE(events > 0 || next_event(node_, one_within).has_value())
        << "a shortage that lasts is repeated";
}

TEST_F(Pressure, R16_unread_events_replace_each_other) {
    const auto low_bytes = low(meminfo("MemAvailable") + 64 * MiB);
    const Region region(node_, MiB);
    sleep(4);
    ASSERT_TRUE(next_event(node_, one_within).has_value());
    // Four or more were raised. Another may have been just now.
    (void)next_event(node_, 0);
    EXPECT_FALSE(next_event(node_, 0).has_value());
}

TEST_F(Pressure, R16_page_cache_alone_raises_nothing) {
    const auto low_bytes = low(meminfo("MemAvailable") / 2);
    // More file data than memory: the kernel reclaims all the time, but only page cache.
    const UniqueFd disk(must(open("/dev/vdb", O_RDONLY | O_CLOEXEC), "/dev/vdb"));
    must_shell("dd if=/dev/vdb of=/dev/null bs=1M 2>/dev/null");
    const auto cached = meminfo("Cached") + meminfo("Buffers");
    EXPECT_GT(cached, meminfo("MemFree")) << "the disk is larger than the memory";
    EXPECT_FALSE(next_event(node_, none_for).has_value());
}

TEST_F(Pressure, read_without_an_event_and_with_a_short_buffer) {
    hcamem_event event{};
    EXPECT_EQ(read(node_.fd(), &event, sizeof event), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(read(node_.fd(), &event, sizeof event - 1), -1);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Pressure, a_blocking_read_returns_when_memory_gets_short) {
    const auto low_bytes = low(meminfo("MemAvailable") + 64 * MiB);
    support::Child reader([](support::Channel& channel) {
        const Node node;
        channel.send(0);
        hcamem_event event{};
        require(read(node.fd(), &event, sizeof event) == static_cast<ssize_t>(sizeof event),
                "read of one event");
        channel.send(event.type);
    });
    EXPECT_EQ(reader.channel().receive(), 0);
    const Region region(node_, MiB);
    EXPECT_EQ(reader.channel().receive(), HCAMEM_EVENT_LOW);
    EXPECT_EQ(reader.wait(), 0);
}
