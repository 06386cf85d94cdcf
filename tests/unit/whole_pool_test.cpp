// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Threads that together never want more than there is are never refused, however blocks go
// between their caches and the heap behind meanwhile.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "support/blocks.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

constexpr std::size_t user_count = 3;

struct interface_of_blocks {
    std::function<void*()> get;
    std::function<void(void*)> put;
};

/// Each thread takes up to its share again and again. How often one was refused.
std::size_t count_refusals(std::size_t share, std::size_t rounds, const interface_of_blocks& from) {
    std::atomic<std::size_t> refused{0};
    std::vector<std::thread> users;
    for (std::size_t user = 0; user < user_count; ++user) {
        users.emplace_back([&, user] {
            std::mt19937_64 random(user);
            std::vector<void*> mine;
            for (std::size_t round = 0; round < rounds; ++round) {
                const std::size_t goal = random() % 4 == 0 ? random() % share + 1 : share;
                while (mine.size() < goal) {
                    void* const block = from.get();
                    if (block == nullptr) {
                        ++refused;
                        break;
                    }
                    mine.push_back(block);
                }
                const std::size_t keep = random() % 3 == 0 ? mine.size() / 2 : 0;
                for (; mine.size() > keep; mine.pop_back()) {
                    from.put(mine.back());
                }
            }
            std::for_each(mine.begin(), mine.end(), from.put);
        });
    }
    for (std::thread& user : users) {
        user.join();
    }
    return refused;
}

class WholePool : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, WholePool, testing::Values(1000, 4096, 20'000));

TEST_P(WholePool, no_thread_is_refused_its_share) {
    hcamem_options options = test_options();
    options.maximum = 2 * MiB;
    const pool_ptr pool = make_pool(options);
    const std::vector<void*> all = allocate_all(pool.get(), GetParam());
    free_all(pool.get(), all);
    const std::size_t share = all.size() / user_count;
    EXPECT_EQ(count_refusals(share, 1'000'000 / share,
                             {[&] { return hcamem_alloc(pool.get(), GetParam(), 0, 0); },
                              [&](void* block) { hcamem_free(pool.get(), block); }}),
              0U);
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 0U);
}

TEST(WholeBufferPool, no_thread_is_refused_its_share) {
    const pool_ptr pool = make_pool(test_options());
    constexpr std::uint32_t count = 300;
    hcamem_fixed* const buffers = hcamem_fixed_create(pool.get(), 1024, 0, count, 0);
    ASSERT_NE(buffers, nullptr);
    constexpr std::size_t share = count / user_count;
    EXPECT_EQ(count_refusals(share, 1'000'000 / share,
                             {[&] { return hcamem_fixed_get(buffers, 0); },
                              [&](void* buffer) { hcamem_fixed_put(buffers, buffer); }}),
              0U);
    EXPECT_EQ(hcamem_fixed_destroy(buffers), 0);
}

} // namespace
