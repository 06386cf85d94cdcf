// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Double free, foreign pointers, wrong sizes and dead handles are always found.
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "support/fake_registrar.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

std::string message() {
    return hcamem_last_message();
}

const std::array<std::size_t, 4> sizes{64, 5000, 300 * KiB, 3 * MiB}; // all classes of block

TEST(Misuse, double_free_is_found) {
    const pool_ptr pool = make_pool();
    for (const std::size_t size : sizes) {
        void* kept = hcamem_alloc(pool.get(), size, 0, 0);
        void* block = hcamem_alloc(pool.get(), size, 0, 0);
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(hcamem_free(pool.get(), block), 0);
        EXPECT_EQ(hcamem_free(pool.get(), block), -EINVAL);
        EXPECT_NE(message().find("freed before"), std::string::npos) << message();
        EXPECT_EQ(hcamem_free(pool.get(), kept), 0);
        EXPECT_EQ(hcamem_free(pool.get(), kept), -EINVAL);
    }
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 0U);
}

TEST(Misuse, foreign_pointers_are_found) {
    const pool_ptr pool = make_pool();
    const pool_ptr other = make_pool();
    void* block = hcamem_alloc(pool.get(), 5000, 0, 0);
    void* others = hcamem_alloc(other.get(), 5000, 0, 0);
    int on_stack = 0;
    EXPECT_EQ(hcamem_free(pool.get(), &on_stack), -EINVAL);
    EXPECT_NE(message().find("not of this pool"), std::string::npos) << message();
    EXPECT_EQ(hcamem_free(pool.get(), others), -EINVAL);
    EXPECT_EQ(hcamem_free(pool.get(), reinterpret_cast<void*>(1)), -EINVAL);
    EXPECT_EQ(hcamem_free(pool.get(), reinterpret_cast<void*>(UINTPTR_MAX)), -EINVAL);
    EXPECT_EQ(hcamem_free(pool.get(), static_cast<char*>(block) + 60 * MiB), -EINVAL)
        << "in the reserved range, where no slab is";
    EXPECT_EQ(hcamem_free(pool.get(), block), 0);
    EXPECT_EQ(hcamem_free(other.get(), others), 0);
}

TEST(Misuse, pointers_into_a_block_are_found) {
    const pool_ptr pool = make_pool();
    for (const std::size_t size : sizes) {
        auto* block = static_cast<char*>(hcamem_alloc(pool.get(), size, 0, 0));
        ASSERT_NE(block, nullptr);
        for (const std::size_t inside : {std::size_t{1}, std::size_t{8}, size / 2, size - 1}) {
            EXPECT_EQ(hcamem_free(pool.get(), block + inside), -EINVAL) << size << " " << inside;
        }
        EXPECT_EQ(hcamem_free(pool.get(), block), 0);
    }
}

TEST(Misuse, wrong_sizes_are_found_and_the_block_stays) {
    const pool_ptr pool = make_pool();
    for (const std::size_t size : sizes) {
        void* block = hcamem_alloc(pool.get(), size, 0, 0);
        for (const std::size_t wrong : {size / 2 + 33, size * 2, 100 * MiB, SIZE_MAX}) {
            EXPECT_EQ(hcamem_free_sized(pool.get(), block, wrong, 0), -EINVAL) << size;
        }
        EXPECT_EQ(hcamem_free_sized(pool.get(), block, size, 3), -EINVAL);
        EXPECT_NE(hcamem_usable(pool.get(), block), 0U);
        EXPECT_EQ(hcamem_free_sized(pool.get(), block, size, 0), 0) << message();
    }
}

TEST(Misuse, freeing_many_gives_the_good_ones_back) {
    const pool_ptr pool = make_pool();
    std::array<void*, 3> blocks{};
    ASSERT_EQ(hcamem_alloc_n(pool.get(), 100, blocks.data(), blocks.size()), 0);
    int on_stack = 0;
    std::array<void*, 5> mixed{blocks[0], &on_stack, blocks[1], nullptr, blocks[2]};
    EXPECT_EQ(hcamem_free_n(pool.get(), mixed.data(), mixed.size()), -EINVAL);
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 0U);
}

TEST(Misuse, calls_on_a_closed_pool_are_found) {
    hcamem_pool* const pool = make_pool().release();
    void* block = hcamem_alloc(pool, 64, 0, 0);
    ASSERT_EQ(hcamem_free(pool, block), 0);
    ASSERT_EQ(hcamem_pool_close(pool), 0);
    EXPECT_EQ(hcamem_alloc(pool, 64, 0, 0), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(hcamem_free(pool, block), -EINVAL);
    EXPECT_EQ(hcamem_pool_close(pool), -EINVAL);
    EXPECT_EQ(hcamem_usable(pool, block), 0U);
    EXPECT_EQ(hcamem_owns(pool, block), 0);
    EXPECT_EQ(hcamem_closed(pool), 1);
    EXPECT_EQ(hcamem_trim(pool, 0), 0U);
    hcamem_stats stats{};
    stats.size = sizeof stats;
    EXPECT_EQ(hcamem_get_stats(pool, &stats), -EINVAL);
    EXPECT_NE(message().find("closed before"), std::string::npos) << message();
}

TEST(Misuse, a_dead_handle_stays_dead_while_new_pools_come_and_go) {
    hcamem_pool* const dead = make_pool().release();
    ASSERT_EQ(hcamem_pool_close(dead), 0);
    for (int count = 0; count < 20; ++count) {
        const pool_ptr other = make_pool();
        EXPECT_NE(other.get(), dead);
        EXPECT_EQ(hcamem_pool_close(dead), -EINVAL);
    }
}

TEST(Misuse, detaching_twice_is_found) {
    const pool_ptr pool = make_pool();
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool.get(), domain, &binding), 0);
    EXPECT_EQ(hcamem_detach(binding), 0);
    EXPECT_EQ(hcamem_detach(binding), -EINVAL);
}

TEST(Misuse, null_arguments_are_refused_or_harmless) {
    EXPECT_EQ(hcamem_pool_create(nullptr, nullptr), -EINVAL);
    EXPECT_EQ(hcamem_pool_close(nullptr), -EINVAL);
    EXPECT_EQ(hcamem_alloc(nullptr, 64, 0, 0), nullptr);
    EXPECT_EQ(hcamem_free(nullptr, nullptr), 0);
    EXPECT_EQ(hcamem_detach(nullptr), 0);
    EXPECT_EQ(hcamem_lkey(nullptr, nullptr), 0U);
    EXPECT_EQ(hcamem_rkey(nullptr, nullptr), 0U);
    const pool_ptr pool = make_pool();
    EXPECT_EQ(hcamem_free(pool.get(), nullptr), 0);
    EXPECT_EQ(hcamem_free_sized(pool.get(), nullptr, 64, 0), 0);
    EXPECT_EQ(hcamem_attach(pool.get(), nullptr, 0, nullptr), -EINVAL);
    EXPECT_EQ(hcamem_key_of(nullptr, nullptr, nullptr), -EINVAL);
    void* block = nullptr;
    EXPECT_EQ(hcamem_alloc_n(pool.get(), 64, nullptr, 1), -EINVAL);
    EXPECT_EQ(hcamem_alloc_n(nullptr, 64, &block, 1), -EINVAL);
    EXPECT_EQ(hcamem_free_n(pool.get(), nullptr, 1), -EINVAL);
    EXPECT_EQ(hcamem_export(pool.get(), pool.get(), 1, nullptr), -EINVAL);
}

class MisuseDeath : public testing::Test {
  protected:
    MisuseDeath() {
        // Other threads may exist: run the statement in a fresh process.
        testing::FLAGS_gtest_death_test_style = "threadsafe";
    }
    static hcamem_options aborting() {
        hcamem_options options = test_options();
        options.flags &= ~static_cast<std::uint32_t>(HCAMEM_OPT_MISUSE_ERROR);
        return options;
    }
};

TEST_F(MisuseDeath, double_free_aborts_with_a_message) {
    const pool_ptr pool = make_pool(aborting());
    void* block = hcamem_alloc(pool.get(), 64, 0, 0);
    hcamem_free(pool.get(), block);
    EXPECT_DEATH(hcamem_free(pool.get(), block), "hcamem: block .* is not live: it was freed");
}

TEST_F(MisuseDeath, foreign_pointer_aborts_with_a_message) {
    const pool_ptr pool = make_pool(aborting());
    int on_stack = 0;
    EXPECT_DEATH(hcamem_free(pool.get(), &on_stack), "hcamem: pointer .* is not of this pool");
}

TEST_F(MisuseDeath, wrong_size_aborts_with_a_message) {
    const pool_ptr pool = make_pool(aborting());
    void* block = hcamem_alloc(pool.get(), 64, 0, 0);
    EXPECT_DEATH(hcamem_free_sized(pool.get(), block, 4096, 0), "hcamem: block .* 4096 bytes");
    hcamem_free(pool.get(), block);
}

#if defined(__SANITIZE_ADDRESS__)
TEST_F(MisuseDeath, AddressSanitizer_sees_writes_past_a_block_and_after_a_free) {
    const pool_ptr pool = make_pool(aborting());
    for (const std::size_t size : {std::size_t{64}, std::size_t{4096}, 2 * MiB}) {
        auto* block = static_cast<volatile char*>(hcamem_alloc(pool.get(), size, 0, 0));
        block[size - 1] = 1;
        EXPECT_DEATH(block[size] = 1, "AddressSanitizer");
        hcamem_free(pool.get(), const_cast<char*>(block));
        EXPECT_DEATH(block[0] = 1, "use-after-poison");
    }
}
#endif

TEST_F(MisuseDeath, use_after_close_aborts_with_a_message) {
    hcamem_pool* const pool = make_pool(aborting()).release();
    hcamem_pool_close(pool);
    EXPECT_DEATH(static_cast<void>(hcamem_alloc(pool, 64, 0, 0)), "hcamem: pool .* was closed");
}

} // namespace
