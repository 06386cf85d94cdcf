// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Who wants memory back is heard, and gets what is idle and nothing else.
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <poll.h>
#include <rdma/hcamem.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/file.h"
#include "pressure/memory_cgroup.h"
#include "support/child.hpp"
#include "support/fake_source.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;
using hcamem::core::file;
using hcamem::core::memory_cgroup;

/// A pool whose node says what the test wants.
class Pressure : public testing::Test {
  protected:
    Pressure() {
        kernel_.tells_events = true;
        hcamem_options options = test_options();
        options.growth = 4 * MiB;
        pool_ = make_pool(options, kernel_);
    }

    int listen() {
        const int descriptor = hcamem_event_fd(pool_.get());
        node_ = file(kernel_.events_end.exchange(-1));
        return descriptor;
    }

    void say(std::uint32_t type, std::uint64_t wanted) const {
        const hcamem_event event{type, 0, wanted};
        ASSERT_TRUE(node_) << "the pool did not open its node";
        ASSERT_EQ(send(node_.descriptor(), &event, sizeof event, 0),
                  static_cast<ssize_t>(sizeof event));
    }

    /// So many idle slabs of 4 MiB.
    void make_idle(int slabs) {
        std::vector<void*> blocks;
        for (int count = 0; count < slabs; ++count) {
            blocks.push_back(hcamem_alloc(pool_.get(), 4 * MiB, 0, 0));
            ASSERT_NE(blocks.back(), nullptr);
        }
        for (void* block : blocks) {
            hcamem_free(pool_.get(), block);
        }
    }

    [[nodiscard]] std::uint64_t slab_bytes() const { return stats_of(pool_.get()).slab_bytes; }

    fake_limits kernel_;
    file node_;
    pool_ptr pool_;
};

bool readable(int descriptor) {
    pollfd waited{descriptor, POLLIN, 0};
    return poll(&waited, 1, 0) == 1;
}

hcamem_pressure next_of(hcamem_pool* pool, int& result) {
    hcamem_pressure taken{};
    taken.size = sizeof taken;
    result = hcamem_next_pressure(pool, &taken);
    return taken;
}

TEST_F(Pressure, is_told_through_the_descriptor) {
    const int descriptor = listen();
    ASSERT_GE(descriptor, 0) << hcamem_last_message();
    EXPECT_FALSE(readable(descriptor));
    int result = 0;
    next_of(pool_.get(), result);
    EXPECT_EQ(result, -EAGAIN);

    say(HCAMEM_EVENT_LOW, 3 * MiB);
    EXPECT_TRUE(readable(descriptor));
    const hcamem_pressure low = next_of(pool_.get(), result);
    EXPECT_EQ(result, 0);
    EXPECT_EQ(low.level, static_cast<std::uint32_t>(HCAMEM_PRESSURE_LOW));
    EXPECT_EQ(low.wanted, 3 * MiB);
    EXPECT_FALSE(readable(descriptor));
    EXPECT_EQ(hcamem_event_fd(pool_.get()), descriptor) << "the same at each call";
}

TEST_F(Pressure, the_end_of_the_hca_is_told_once) {
    const int descriptor = listen();
    ASSERT_GE(descriptor, 0);
    say(HCAMEM_EVENT_GONE, 0);
    int result = 0;
    EXPECT_EQ(next_of(pool_.get(), result).level,
              static_cast<std::uint32_t>(HCAMEM_PRESSURE_HCA_GONE));
    node_ = file(); // as the kernel says from then on
    EXPECT_FALSE(readable(descriptor)) << "a loop would spin";
    next_of(pool_.get(), result);
    EXPECT_EQ(result, -EAGAIN);
}

TEST_F(Pressure, relieve_gives_back_what_is_wanted) {
    ASSERT_GE(listen(), 0);
    auto* const used = static_cast<char*>(hcamem_alloc(pool_.get(), 4 * MiB, 0, 0));
    ASSERT_NE(used, nullptr);
    std::memset(used, 7, 4 * MiB);
    make_idle(4);
    ASSERT_EQ(slab_bytes(), 20 * MiB);
    EXPECT_EQ(hcamem_relieve(pool_.get()), 0U) << "nobody asked";

    say(HCAMEM_EVENT_LOW, 5 * MiB);
    EXPECT_EQ(hcamem_relieve(pool_.get()), 8 * MiB) << "whole slabs";
    EXPECT_EQ(slab_bytes(), 12 * MiB);

    say(HCAMEM_EVENT_CRITICAL, MiB);
    EXPECT_EQ(hcamem_relieve(pool_.get()), 8 * MiB) << "all that is idle";
    EXPECT_EQ(slab_bytes(), 4 * MiB);

    say(HCAMEM_EVENT_CRITICAL, MiB);
    EXPECT_EQ(hcamem_relieve(pool_.get()), 0U) << "memory in use is never taken";
    for (std::size_t at = 0; at < 4 * MiB; at += kernel_page) {
        ASSERT_EQ(used[at], 7);
    }
    hcamem_free(pool_.get(), used);
}

TEST_F(Pressure, structures_of_another_size_are_refused) {
    ASSERT_GE(listen(), 0);
    hcamem_pressure taken{};
    taken.size = 8;
    EXPECT_EQ(hcamem_next_pressure(pool_.get(), &taken), -EINVAL);
    EXPECT_EQ(hcamem_next_pressure(pool_.get(), nullptr), -EINVAL);
}

TEST_F(Pressure, in_a_child_the_pool_is_closed) {
    ASSERT_GE(listen(), 0);
    EXPECT_EQ(run_in_child(birth::fork,
                           [this] {
                               hcamem_pressure taken{};
                               taken.size = sizeof taken;
                               return hcamem_event_fd(pool_.get()) == -ESTALE &&
                                              hcamem_next_pressure(pool_.get(), &taken) ==
                                                  -ESTALE &&
                                              hcamem_relieve(pool_.get()) == 0
                                          ? 0
                                          : 1;
                           }),
              0);
}

/// With HCAMEM_OPT_RELIEVE.
class Reliever : public Pressure {
  protected:
    Reliever() {
        hcamem_options options = test_options();
        options.growth = 4 * MiB;
        options.flags |= HCAMEM_OPT_RELIEVE;
        pool_ = make_pool(options, kernel_);
        node_ = file(kernel_.events_end.exchange(-1));
    }

    [[nodiscard]] bool comes_down_to(std::uint64_t bytes) const {
        for (int tries = 0; tries < 6000 && slab_bytes() > bytes; ++tries) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return slab_bytes() == bytes;
    }
};

TEST_F(Reliever, gives_back_by_itself) {
    make_idle(4);
    say(HCAMEM_EVENT_LOW, 8 * MiB);
    EXPECT_TRUE(comes_down_to(8 * MiB)) << slab_bytes();
    say(HCAMEM_EVENT_CRITICAL, 1);
    EXPECT_TRUE(comes_down_to(0)) << slab_bytes();
    EXPECT_EQ(hcamem_event_fd(pool_.get()), -EBUSY);
}

TEST_F(Reliever, works_beside_threads_that_allocate) {
    std::thread busy([this] {
        for (int round = 0; round < 2000; ++round) {
            void* block = hcamem_alloc(pool_.get(), 64 * KiB, 0, 0);
            ASSERT_NE(block, nullptr);
            std::memset(block, round, 64 * KiB);
            hcamem_free(pool_.get(), block);
        }
    });
    for (int round = 0; round < 20; ++round) {
        say(HCAMEM_EVENT_CRITICAL, 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    busy.join();
}

TEST_F(Reliever, a_child_lives_without_the_thread) {
    EXPECT_EQ(run_in_child(birth::fork,
                           [this] {
                               hcamem_pool_close(pool_.get());
                               return hcamem_closed(pool_.get()) == 1 ? 0 : 1;
                           }),
              0);
    make_idle(1);
    say(HCAMEM_EVENT_CRITICAL, 1);
    EXPECT_TRUE(comes_down_to(0)) << "the parent's goes on";
}

/// A cgroup of files that the test writes.
class MemoryCgroup : public testing::Test {
  protected:
    MemoryCgroup() : root_(testing::TempDir() + "cgroup" + std::to_string(getpid())) {
        std::filesystem::create_directories(root_ + "/outer/inner");
        write("/outer/inner/memory.max", "max");
        limit("/outer", 1000 * MiB, 100 * MiB);
        events("/outer", 0, 0);
        events("/outer/inner", 0, 0);
        write("/outer/inner/memory.high", "max");
        write("/outer/memory.high", "max");
    }
    ~MemoryCgroup() override { std::filesystem::remove_all(root_); }

    void write(const std::string& name, const std::string& text) const {
        std::ofstream(root_ + name) << text << "\n";
    }
    void limit(const std::string& level, std::uint64_t most, std::uint64_t current,
               std::uint64_t cache = 0) const {
        write(level + "/memory.max", std::to_string(most));
        write(level + "/memory.current", std::to_string(current));
        write(level + "/memory.stat", "anon 1\nfile 5\ninactive_file " + std::to_string(cache) +
                                          "\nactive_file 0\nslab_reclaimable 0");
    }
    void events(const std::string& level, int max, int oom) const {
        write(level + "/memory.events", "low 7\nhigh 0\nmax " + std::to_string(max) + "\noom " +
                                            std::to_string(oom) + "\noom_kill 0");
    }

    std::string root_;
};

TEST_F(MemoryCgroup, levels_without_a_file_are_left_out) {
    EXPECT_EQ(memory_cgroup::levels_of(root_, "/outer/inner").size(), 2U);
    EXPECT_EQ(memory_cgroup::levels_of(root_, "/outer").size(), 1U);
    EXPECT_EQ(memory_cgroup::levels_of(root_, "").size(), 0U) << "the root has none";
    EXPECT_EQ(memory_cgroup::levels_of(root_, "/gone").size(), 0U);
}

TEST_F(MemoryCgroup, a_limit_that_was_met_tells_how_much_is_wanted) {
    auto levels = memory_cgroup::levels_of(root_, "/outer/inner");
    ASSERT_EQ(levels.size(), 2U);
    memory_cgroup& outer = levels[1];
    limit("/outer", 800 * MiB, 760 * MiB);
    EXPECT_EQ(outer.look().level, static_cast<std::uint32_t>(HCAMEM_PRESSURE_NONE))
        << "not met yet";
    events("/outer", 3, 0);
    hcamem_pressure found = outer.look();
    EXPECT_EQ(found.level, static_cast<std::uint32_t>(HCAMEM_PRESSURE_LOW));
    EXPECT_EQ(found.wanted, 60 * MiB) << "down to seven eighths";
    EXPECT_EQ(outer.look().level, static_cast<std::uint32_t>(HCAMEM_PRESSURE_NONE)) << "told once";
    limit("/outer", 800 * MiB, 799 * MiB);
    events("/outer", 4, 0);
    EXPECT_EQ(outer.look().level, static_cast<std::uint32_t>(HCAMEM_PRESSURE_CRITICAL));
    limit("/outer", 800 * MiB, 760 * MiB);
    events("/outer", 4, 1);
    EXPECT_EQ(outer.look().level, static_cast<std::uint32_t>(HCAMEM_PRESSURE_CRITICAL))
        << "the OOM killer was there";
}

TEST_F(MemoryCgroup, page_cache_alone_raises_nothing) {
    auto levels = memory_cgroup::levels_of(root_, "/outer");
    limit("/outer", 800 * MiB, 799 * MiB, 400 * MiB);
    events("/outer", 3, 0);
    EXPECT_EQ(levels.at(0).look().level, static_cast<std::uint32_t>(HCAMEM_PRESSURE_NONE));
}

TEST_F(MemoryCgroup, without_a_limit_nothing_is_wanted) {
    auto levels = memory_cgroup::levels_of(root_, "/outer/inner");
    events("/outer/inner", 5, 1);
    EXPECT_EQ(levels.at(0).look().level, static_cast<std::uint32_t>(HCAMEM_PRESSURE_NONE));
}

} // namespace
