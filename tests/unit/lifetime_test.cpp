// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Closing a pool: when memory and registrations go back.
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "support/fake_registrar.hpp"
#include "support/mapped.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

class Lifetime : public EachMapping {};
INSTANTIATE_EACH_MAPPING(Lifetime);

TEST_P(Lifetime, closing_without_live_blocks_gives_all_memory_back) {
    hcamem_pool* const pool = make_pool(options()).release();
    void* block = hcamem_alloc(pool, 5000, 0, 0);
    ASSERT_TRUE(is_accessible(block));
    hcamem_free(pool, block);
    EXPECT_EQ(hcamem_pool_close(pool), 0);
    EXPECT_FALSE(is_accessible(block));
}

TEST_P(Lifetime, live_blocks_keep_pages_and_registrations_until_the_last_one_goes) {
    hcamem_pool* const pool = make_pool(options()).release();
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool, domain, &binding), 0);
    std::array<void*, 3> blocks{};
    const std::array<std::size_t, 3> sizes{64, 5000, 3 * MiB};
    for (std::size_t index = 0; index < blocks.size(); ++index) {
        blocks[index] = hcamem_alloc(pool, sizes[index], 0, 0);
        ASSERT_NE(blocks[index], nullptr);
    }
    EXPECT_EQ(hcamem_pool_close(pool), -EBUSY);
    EXPECT_NE(std::strstr(hcamem_last_message(), "3 blocks"), nullptr) << hcamem_last_message();
    EXPECT_EQ(hcamem_closed(pool), 1);
    EXPECT_EQ(hcamem_alloc(pool, 64, 0, 0), nullptr);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(hcamem_alloc(pool, 3 * MiB, 0, -1), nullptr) << "does not wait for ever";
    EXPECT_EQ(errno, EBADF);
    for (std::size_t index = 0; index < blocks.size(); ++index) {
        std::memset(blocks[index], 1, sizes[index]);
        EXPECT_TRUE(domain.covers(blocks[index], hcamem_lkey(binding, blocks[index])));
        EXPECT_EQ(hcamem_pool_close(pool), -EBUSY);
        EXPECT_EQ(hcamem_free(pool, blocks[index]), 0);
    }
    EXPECT_EQ(domain.registered(), 0U);
    EXPECT_FALSE(is_accessible(blocks[0]));
    EXPECT_EQ(hcamem_lkey(binding, blocks[0]), 0U);
    EXPECT_EQ(hcamem_detach(binding), 0);
    EXPECT_EQ(hcamem_pool_close(pool), 0) << "drained meanwhile";
    EXPECT_EQ(hcamem_pool_close(pool), -EINVAL) << "and then dead";
}

TEST_P(Lifetime, a_binding_may_be_detached_after_the_pool_was_closed) {
    hcamem_pool* const pool = make_pool(options()).release();
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool, domain, &binding), 0);
    void* block = hcamem_alloc(pool, 64, 0, 0);
    EXPECT_EQ(domain.registered(), 1U);
    hcamem_free(pool, block);
    EXPECT_EQ(hcamem_pool_close(pool), 0);
    EXPECT_EQ(domain.registered(), 0U);
    EXPECT_EQ(hcamem_detach(binding), 0);
}

TEST_P(Lifetime, a_binding_may_be_detached_between_close_and_the_last_free) {
    hcamem_pool* const pool = make_pool(options()).release();
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool, domain, &binding), 0);
    void* block = hcamem_alloc(pool, 64, 0, 0);
    EXPECT_EQ(hcamem_pool_close(pool), -EBUSY);
    EXPECT_EQ(hcamem_detach(binding), 0);
    EXPECT_EQ(domain.registered(), 0U);
    std::memset(block, 1, 64);
    EXPECT_EQ(hcamem_free(pool, block), 0);
}

TEST_P(Lifetime, memory_stays_while_the_HCA_does_not_let_a_registration_go) {
    hcamem_pool* const pool = make_pool(options()).release();
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool, domain, &binding), 0);
    void* block = hcamem_alloc(pool, 64, 0, 0);
    hcamem_free(pool, block);
    domain.fail_deregistration(EBUSY);
    EXPECT_EQ(hcamem_pool_close(pool), 0);
    EXPECT_EQ(hcamem_detach(binding), -EBUSY);
    EXPECT_TRUE(is_accessible(block));
    domain.fail_deregistration(0);
    EXPECT_EQ(hcamem_detach(binding), 0);
    EXPECT_EQ(domain.registered(), 0U);
    EXPECT_FALSE(is_accessible(block));
}

TEST_P(Lifetime, nothing_is_lost_over_many_pools) {
    const std::size_t descriptors = open_descriptors();
    for (int count = 0; count < 200; ++count) { // more than there are idle handles
        const pool_ptr pool = make_pool(options());
        fake_domain domain;
        hcamem_binding* binding = nullptr;
        ASSERT_EQ(attach(pool.get(), domain, &binding), 0);
        void* block = hcamem_alloc(pool.get(), 100, 0, 0);
        ASSERT_NE(block, nullptr);
        ASSERT_EQ(stats_of(pool.get()).live_blocks, 1U);
        ASSERT_TRUE(domain.covers(block, hcamem_lkey(binding, block)));
        ASSERT_EQ(hcamem_free(pool.get(), block), 0);
        ASSERT_EQ(hcamem_detach(binding), 0);
    }
    EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(LifetimeThreads, allocation_that_races_with_close_succeeds_or_says_closed) {
    for (int round = 0; round < 20; ++round) {
        hcamem_pool* const pool = make_pool().release();
        void* kept = hcamem_alloc(pool, 64, 0, 0); // so that the handle lives on
        std::atomic<int> running{0};
        std::vector<std::thread> threads;
        for (std::size_t index = 0; index < 3; ++index) {
            threads.emplace_back([&, index] {
                ++running;
                for (;;) {
                    void* block = hcamem_alloc(pool, std::size_t{100} << (5 * index), 0, 0);
                    if (block == nullptr) {
                        EXPECT_EQ(errno, EBADF) << hcamem_last_message();
                        return;
                    }
                    EXPECT_EQ(hcamem_free(pool, block), 0);
                }
            });
        }
        while (running != 3) {
            std::this_thread::yield();
        }
        EXPECT_EQ(hcamem_pool_close(pool), -EBUSY);
        for (std::thread& thread : threads) {
            thread.join();
        }
        EXPECT_EQ(hcamem_free(pool, kept), 0);
        EXPECT_EQ(hcamem_pool_close(pool), 0);
    }
}

TEST(LifetimeThreads, the_last_free_in_any_thread_gives_the_memory_back) {
    for (int round = 0; round < 20; ++round) {
        hcamem_pool* const pool = make_pool().release();
        fake_domain domain;
        hcamem_binding* binding = nullptr;
        ASSERT_EQ(attach(pool, domain, &binding), 0);
        std::array<std::vector<void*>, 3> blocks;
        for (std::vector<void*>& mine : blocks) {
            mine.resize(50);
            ASSERT_EQ(hcamem_alloc_n(pool, 3000, mine.data(), mine.size()), 0);
        }
        ASSERT_EQ(hcamem_pool_close(pool), -EBUSY);
        std::vector<std::thread> threads;
        for (const std::vector<void*>& mine : blocks) {
            threads.emplace_back(
                [&] { EXPECT_EQ(hcamem_free_n(pool, mine.data(), mine.size()), 0); });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        EXPECT_EQ(domain.registered(), 0U);
        EXPECT_EQ(hcamem_detach(binding), 0);
        EXPECT_EQ(hcamem_pool_close(pool), 0);
    }
}

} // namespace
