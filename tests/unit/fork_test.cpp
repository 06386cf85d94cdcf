// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// In a child the inherited pool is closed and harmless; the parent's registrations stay;
// a new pool works.
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include <unistd.h>

#include "support/child.hpp"
#include "support/fake_registrar.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

class Fork : public testing::TestWithParam<birth> {};
INSTANTIATE_TEST_SUITE_P(By, Fork, testing::Values(birth::fork, birth::clone),
                         testing::PrintToStringParamName());

/// Everything a child may do with what it inherited; no memory is allocated and no lock of
/// the C library taken, so it may run after a clone in the middle of anything. 0: all right.
int use_inherited(hcamem_pool* pool, hcamem_binding* binding, void* block) {
    if (hcamem_closed(pool) != 1) {
        return 1;
    }
    if (hcamem_alloc(pool, 64, 0, -1) != nullptr || errno != ESTALE) {
        return 2;
    }
    void* many[2] = {};
    if (hcamem_alloc_n(pool, 64, many, 2) != -ESTALE) {
        return 3;
    }
    if (std::strstr(hcamem_last_message(), "parent") == nullptr) {
        return 4;
    }
    if (hcamem_free(pool, block) != 0 || hcamem_free(pool, block) != 0 ||
        hcamem_free_sized(pool, block, 1, 0) != 0) {
        return 5;
    }
    if (hcamem_usable(pool, block) != 0 || hcamem_owns(pool, block) != 0) {
        return 6;
    }
    if (hcamem_lkey(binding, block) != 0 || hcamem_rkey(binding, block) != 0) {
        return 7;
    }
    std::uint64_t offset = 0;
    if (hcamem_export(pool, block, 1, &offset) != -ESTALE || hcamem_trim(pool, 0) != 0) {
        return 8;
    }
    if (hcamem_detach(binding) != 0 || hcamem_pool_close(pool) != 0) {
        return 9;
    }
    return 0;
}

int use_new_pool() {
    const pool_ptr fresh = make_pool();
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    if (attach(fresh.get(), domain, &binding) != 0) {
        return 11;
    }
    void* block = hcamem_alloc(fresh.get(), 5000, 0, 0);
    if (block == nullptr) {
        return 12;
    }
    std::memset(block, 1, 5000);
    if (!domain.covers(block, hcamem_lkey(binding, block)) ||
        hcamem_free(fresh.get(), block) != 0 || hcamem_detach(binding) != 0) {
        return 13;
    }
    return domain.registered() == 0 ? 0 : 14;
}

TEST_P(Fork, R12_the_inherited_pool_is_closed_and_harmless_in_the_child) {
    const pool_ptr pool = make_pool();
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool.get(), domain, &binding), 0);
    void* block = hcamem_alloc(pool.get(), 5000, 0, 0);
    std::memset(block, 7, 5000);
    EXPECT_EQ(run_in_child(GetParam(), [&] { return use_inherited(pool.get(), binding, block); }),
              0);
    EXPECT_EQ(domain.registered(), 1U);
    EXPECT_EQ(static_cast<char*>(block)[4999], 7);
    EXPECT_TRUE(domain.covers(block, hcamem_lkey(binding, block)));
    EXPECT_EQ(hcamem_free(pool.get(), block), 0);
    EXPECT_NE(hcamem_alloc(pool.get(), 64, 0, 0), nullptr);
    hcamem_detach(binding);
}

TEST_P(Fork, a_child_calls_no_verb_on_what_it_inherited) {
    const pool_ptr pool = make_pool();
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool.get(), domain, &binding), 0);
    void* block = hcamem_alloc(pool.get(), 5000, 0, 0);
    EXPECT_EQ(run_in_child(GetParam(),
                           [&] {
                               const int result = use_inherited(pool.get(), binding, block);
                               // The child's copy of the fake HCA saw no call.
                               return result != 0 ? result : domain.registered() == 1 ? 0 : 20;
                           }),
              0);
    hcamem_detach(binding);
}

TEST_P(Fork, R13_a_child_and_a_grandchild_make_pools_of_their_own) {
    const pool_ptr pool = make_pool();
    void* block = hcamem_alloc(pool.get(), 5000, 0, 0);
    EXPECT_EQ(run_in_child(GetParam(),
                           [&] {
                               if (const int result = use_new_pool(); result != 0) {
                                   return result;
                               }
                               const pool_ptr own = make_pool();
                               void* mine = hcamem_alloc(own.get(), 100, 0, 0);
                               const int grandchild = run_in_child(GetParam(), [&] {
                                   if (hcamem_closed(own.get()) != 1 ||
                                       hcamem_closed(pool.get()) != 1 ||
                                       hcamem_free(own.get(), mine) != 0) {
                                       return 30;
                                   }
                                   return use_new_pool();
                               });
                               if (grandchild != 0) {
                                   return grandchild;
                               }
                               return hcamem_free(own.get(), mine) == 0 ? 0 : 31;
                           }),
              0);
    EXPECT_EQ(hcamem_free(pool.get(), block), 0);
}

TEST_P(Fork, a_pool_made_after_the_child_reused_a_handle_is_not_mistaken_for_an_old_one) {
    for (int count = 0; count < 100; ++count) { // the idle handles are full
        make_pool();
    }
    EXPECT_EQ(run_in_child(GetParam(),
                           [] {
                               for (int count = 0; count < 100; ++count) {
                                   make_pool();
                               }
                               return use_new_pool();
                           }),
              0);
}

TEST_P(Fork, a_storm_of_allocations_cannot_make_the_child_hang) {
    const pool_ptr pool = make_pool();
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool.get(), domain, &binding), 0);
    void* block = hcamem_alloc(pool.get(), 64, 0, 0);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (std::size_t index = 0; index < 2; ++index) {
        threads.emplace_back([&, index] {
            while (!stop) {
                void* mine = hcamem_alloc(pool.get(), index == 0 ? 64 : 3 * MiB, 0, 0);
                hcamem_free(pool.get(), mine);
                if (index == 1) {
                    hcamem_trim(pool.get(), 0);
                }
            }
        });
    }
    for (int count = 0; count < 40; ++count) {
        ASSERT_EQ(run_in_child(GetParam(),
                               [&] {
                                   const int result = use_inherited(pool.get(), binding, block);
                                   // malloc() is usable only in a child of fork().
                                   if (result != 0 || GetParam() == birth::clone) {
                                       return result;
                                   }
                                   return use_new_pool();
                               }),
                  0);
    }
    stop = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
    hcamem_free(pool.get(), block);
    hcamem_detach(binding);
}

class ForkPolicy : public EachMapping {};
INSTANTIATE_EACH_MAPPING(ForkPolicy);

TEST_P(ForkPolicy, R12_zero_the_child_sees_zeros_and_cannot_write_the_parents_buffer) {
    const pool_ptr pool = make_pool(options());
    auto* block = static_cast<volatile char*>(hcamem_alloc(pool.get(), 3 * MiB, 0, 0));
    block[0] = 1;
    block[3 * MiB - 1] = 2;
    EXPECT_EQ(run_in_child(birth::fork,
                           [&] {
                               if (block[0] != 0 || block[3 * MiB - 1] != 0) {
                                   return 1;
                               }
                               block[0] = 9;
                               return block[0] == 9 ? 0 : 2;
                           }),
              0);
    EXPECT_EQ(block[0], 1);
    EXPECT_EQ(block[3 * MiB - 1], 2);
}

TEST_P(ForkPolicy, dontcopy_the_child_has_nothing_there) {
    hcamem_options chosen = options();
    chosen.fork = HCAMEM_FORK_DONTCOPY;
    const pool_ptr pool = make_pool(chosen);
    auto* block = static_cast<volatile char*>(hcamem_alloc(pool.get(), 64, 0, 0));
    block[0] = 1;
    EXPECT_EQ(run_in_child(birth::fork,
                           [&] {
                               std::signal(SIGSEGV, [](int) { _exit(42); });
                               return static_cast<int>(block[0]);
                           }),
              42);
    EXPECT_EQ(block[0], 1);
}

TEST_P(ForkPolicy, share_the_child_has_the_same_memory) {
    hcamem_options chosen = options();
    chosen.fork = HCAMEM_FORK_SHARE;
    const pool_ptr pool = make_pool(chosen);
    auto* block = static_cast<volatile char*>(hcamem_alloc(pool.get(), 3 * MiB, 0, 0));
    block[0] = 1;
    EXPECT_EQ(run_in_child(birth::fork,
                           [&] {
                               const int seen = block[0];
                               block[3 * MiB - 1] = 5;
                               return seen;
                           }),
              1);
    EXPECT_EQ(block[3 * MiB - 1], 5);
}

} // namespace
