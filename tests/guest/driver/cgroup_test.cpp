// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The memory cgroup pays, and its limit refuses without waking its OOM killer.
#include <gtest/gtest.h>

#include <vector>

#include "kinds.hpp"
#include "support/cgroup.hpp"
#include "support/child.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

class Cgroup : public MappingModes {};
INSTANTIATE_TEST_SUITE_P(, Cgroup, both_mappings, mapping_name);

// The counter is right to a batch for each CPU.
constexpr std::uint64_t slack = 2 * MiB;

} // namespace

TEST_P(Cgroup, charge_is_visible_and_goes_with_the_memory) {
    const MemoryCgroup group;
    Child child([&](Channel& channel) {
        group.enter();
        channel.send(0);
        (void)channel.receive();
        {
            const Region region(Node(), 64 * MiB, kind());
            channel.send(0);
            (void)channel.receive();
        }
        channel.send(0);
        (void)channel.receive();
    });
    (void)child.channel().receive();
    const std::uint64_t before = group.current();
    child.channel().send(0);
    (void)child.channel().receive();
    EXPECT_GE(group.current() + slack, before + 64 * MiB);
    child.channel().send(0);
    (void)child.channel().receive();
    EXPECT_TRUE(eventually([&] { return group.current() < before + slack; })) << group.current();
}

TEST_P(Cgroup, its_limit_refuses_and_kills_nobody) {
    const Node node;
    const std::uint64_t before = node.total();
    const MemoryCgroup group(32 * MiB);
    EXPECT_TRUE(succeeds_in_child({}, [&](Channel&) {
        group.enter();
        const Node own;
        for (const std::size_t size : {64 * MiB, 33 * MiB, 200 * MiB}) {
            require(Region::attempt(own, size, kind()) == ENOMEM, "over memory.max");
            require(own.total() == before, "held although refused");
        }
        require(Region::attempt(own, 8 * MiB, kind()) == 0, "below memory.max");
        for (int i = 0; i < 10; ++i) {
            require(Region::attempt(own, 40 * MiB, kind()) == ENOMEM, "again and again");
        }
        require(Region::attempt(own, 8 * MiB, kind()) == 0, "nothing was left charged");
    }));
    EXPECT_EQ(group.event("oom_kill"), 0U);
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

TEST_P(Cgroup, many_small_regions_end_at_the_limit_too) {
    const Node node;
    const std::uint64_t before = node.total();
    const MemoryCgroup group(32 * MiB);
    EXPECT_TRUE(succeeds_in_child({}, [&](Channel&) {
        group.enter();
        const Node own;
        int error = 0;
        std::vector<Region> regions;
        while (error == 0) {
            require(regions.size() < 64, "64 MiB in a cgroup of 32 MiB");
            error = Region::attempt(own, MiB, kind());
            if (error == 0) {
                regions.emplace_back(own, MiB, kind());
            }
        }
        require(error == ENOMEM, "ENOMEM");
        require(regions.size() > 16, "much less than the limit was granted");
    }));
    EXPECT_EQ(group.event("oom_kill"), 0U);
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}
