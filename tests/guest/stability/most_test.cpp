// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// With the caps lifted by root, nearly all of the machine's memory can be pinned.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "support/child.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

TEST(Most, R21_fifteen_sixteenths_of_what_is_available_can_be_pinned) {
    const ModuleParameter cap("max_bytes", std::numeric_limits<std::int64_t>::max());
    const ModuleParameter reserve("reserve_bytes", 1);
    write_text("/proc/sys/vm/drop_caches", "3");
    const Node node;
    const auto before = node.total();
    const auto available = meminfo("MemAvailable");

    std::uint64_t obtained = 0;
    int refusal = 0;
    std::vector<Region> regions;
    for (std::size_t size = 64 * MiB; size >= page_size;) {
        auto request = create_request(size, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_ZERO});
        refusal = node.try_create(request);
        if (refusal == 0) {
            obtained += size;
        } else {
            EXPECT_EQ(refusal, ENOMEM);
            size /= 4;
        }
    }
    EXPECT_GE(obtained, available / 16 * 15) << "of " << available << " bytes available";
    // The guest lives: it can still run a program.
    EXPECT_EQ(shell("true"), 0);
    regions.clear();
    EXPECT_EQ(node.total() - before, obtained);
}

TEST(Most, R21_the_memory_comes_back) {
    const Node node;
    EXPECT_TRUE(eventually([&] { return node.total() == 0; }));
    EXPECT_EQ(Region::attempt(node, 64 * MiB), 0);
}

TEST(Most, R18_an_ordinary_user_does_not_get_near_it_with_the_default_caps) {
    const auto total = meminfo("MemTotal");
    const Identity user{fresh_user(), RLIM_INFINITY, std::nullopt};
    const auto obtained = value_from_child(user, [] {
        const Node node;
        std::int64_t sum = 0;
        for (std::size_t size = 64 * MiB; size >= MiB;) {
            auto request = create_request(size);
            if (node.try_create(request) == 0) {
                sum += static_cast<std::int64_t>(size);
            } else {
                size /= 4;
            }
        }
        return sum;
    });
    EXPECT_GT(obtained, 0);
    EXPECT_LE(static_cast<std::uint64_t>(obtained), total / 2 + 64 * MiB);
}
