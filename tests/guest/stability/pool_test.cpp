// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The library hears of pressure, from the module and from its memory cgroup, and gives idle
// memory back by itself; blocks in use keep their bytes.
#include <gtest/gtest.h>
#include <hcamem.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

#include "support/cgroup.hpp"
#include "support/child.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

struct ClosePool {
    void operator()(hcamem_pool* pool) const { hcamem_pool_close(pool); }
};
using Pool = std::unique_ptr<hcamem_pool, ClosePool>;

constexpr std::size_t block_size = 8 * MiB;

Pool make_pool(std::uint32_t flags) {
    hcamem_options options{};
    hcamem_options_init(&options, sizeof options);
    options.source = HCAMEM_DEVICE;
    options.initial = 0;
    options.growth = block_size;
    options.flags |= flags;
    hcamem_pool* made = nullptr;
    require(hcamem_pool_create(&options, &made) == 0, hcamem_last_message());
    return Pool(made);
}

std::uint64_t held(hcamem_pool* pool) {
    hcamem_stats stats{};
    stats.size = sizeof stats;
    hcamem_get_stats(pool, &stats);
    return stats.slab_bytes;
}

/// One block in use, filled, and so many bytes that are idle.
unsigned char* use_one(hcamem_pool* pool, std::size_t idle) {
    auto* used = static_cast<unsigned char*>(hcamem_alloc(pool, block_size, 0, 0));
    require(used != nullptr, hcamem_last_message());
    fill({used, block_size}, 3);
    std::vector<void*> others;
    for (std::size_t bytes = 0; bytes < idle; bytes += block_size) {
        others.push_back(hcamem_alloc(pool, block_size, 0, 0));
        require(others.back() != nullptr, hcamem_last_message());
    }
    for (void* block : others) {
        require(hcamem_free(pool, block) == 0, "free");
    }
    return used;
}

} // namespace

TEST(PoolUnderPressure, R16_gives_back_what_the_module_wants_and_the_machine_has_it) {
    const ModuleParameter no_critical("critical_bytes", 1);
    const Pool pool = make_pool(HCAMEM_OPT_RELIEVE);
    unsigned char* used = use_one(pool.get(), 160 * MiB);
    ASSERT_GE(held(pool.get()), 160 * MiB);
    const auto before = meminfo("MemAvailable");
    const auto node_before = Node().total();

    // Less than is idle, more than what the rest of the guest takes or frees meanwhile.
    constexpr std::uint64_t wanted = 112 * MiB;
    constexpr std::uint64_t by_others = 48 * MiB;
    const ModuleParameter low("low_bytes", before + wanted);
    EXPECT_EQ(Region::attempt(Node(), page_size), 0); // has the module look
    EXPECT_TRUE(eventually([&] { return meminfo("MemAvailable") >= before + wanted; }))
        << before << " -> " << meminfo("MemAvailable");
    EXPECT_LE(Node().total() + wanted - by_others, node_before) << "it came from the pool";
    EXPECT_TRUE(holds({used, block_size}, 3));
    EXPECT_EQ(hcamem_free(pool.get(), used), 0);
}

TEST(PoolUnderPressure, R16_gives_back_what_its_cgroup_wants) {
    const MemoryCgroup group;
    constexpr std::uint64_t high = 256 * MiB;
    group.set_high(high);
    const auto freed = value_from_child({}, [&]() -> std::int64_t {
        group.enter();
        const Pool pool = make_pool(HCAMEM_OPT_RELIEVE);
        unsigned char* used = use_one(pool.get(), 160 * MiB);
        const auto before = held(pool.get());
        // Ordinary memory of the same cgroup, which has room for it only if idle memory goes.
        constexpr std::size_t step = 4 * MiB;
        for (std::size_t taken = 0; taken < 160 * MiB; taken += step) {
            void* piece = mmap(nullptr, step, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
            require(piece != MAP_FAILED && mlock(piece, step) == 0, "locked ordinary memory");
        }
        require(eventually([&] { return group.current() < high; }), "the pool gave nothing back");
        require(holds({used, block_size}, 3), "bytes in use stay");
        const auto after = held(pool.get());
        hcamem_free(pool.get(), used);
        return static_cast<std::int64_t>(before - after);
    });
    EXPECT_GT(freed, static_cast<std::int64_t>(40 * MiB));
}

TEST(PoolUnderPressure, R16_a_program_with_an_event_loop_of_its_own_is_told) {
    const Pool pool = make_pool(0);
    unsigned char* used = use_one(pool.get(), 32 * MiB);
    const int descriptor = hcamem_event_fd(pool.get());
    ASSERT_GE(descriptor, 0) << hcamem_last_message();
    const ModuleParameter low("low_bytes", meminfo("MemAvailable") + 64 * MiB);
    EXPECT_EQ(Region::attempt(Node(), page_size), 0);
    EXPECT_TRUE(eventually([&] { return hcamem_relieve(pool.get()) > 0; }));
    EXPECT_LT(held(pool.get()), 40 * MiB);
    EXPECT_TRUE(holds({used, block_size}, 3));
    EXPECT_EQ(hcamem_free(pool.get(), used), 0);
}
