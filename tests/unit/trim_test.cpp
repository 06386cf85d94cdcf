// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Idle slabs go back, used ones never.
#include <atomic>
#include <cerrno>
#include <cstring>
#include <semaphore>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

#include "support/fake_registrar.hpp"
#include "support/mapped.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

class Trim : public EachMapping {};
INSTANTIATE_EACH_MAPPING(Trim);

TEST_P(Trim, gives_idle_slabs_back_and_deregisters_them) {
    const pool_ptr pool = make_pool(options());
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool.get(), domain, &binding), 0);
    void* block = hcamem_alloc(pool.get(), 5 * MiB, 0, 0);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(hcamem_trim(pool.get(), 0), 0U) << "in use";
    hcamem_free(pool.get(), block);
    EXPECT_EQ(hcamem_trim(pool.get(), 0), 6 * MiB);
    EXPECT_EQ(stats_of(pool.get()).slab_bytes, 0U);
    EXPECT_EQ(domain.registered(), 0U);
    EXPECT_EQ(hcamem_lkey(binding, block), 0U);
    EXPECT_FALSE(is_accessible(block));
    EXPECT_FALSE(hcamem_owns(pool.get(), block));
    void* again = hcamem_alloc(pool.get(), 5 * MiB, 0, 0);
    ASSERT_NE(again, nullptr) << "and the pool grows again";
    std::memset(again, 1, 5 * MiB);
    EXPECT_TRUE(domain.covers(again, hcamem_lkey(binding, again)));
    hcamem_detach(binding);
}

TEST_P(Trim, never_takes_a_slab_with_a_live_block) {
    const pool_ptr pool = make_pool(options());
    std::vector<char*> blocks;
    for (int count = 0; count < 24; ++count) {
        blocks.push_back(static_cast<char*>(hcamem_alloc(pool.get(), MiB, 0, 0)));
        ASSERT_NE(blocks.back(), nullptr);
        std::memset(blocks.back(), count, MiB);
    }
    for (std::size_t index = 0; index < blocks.size(); ++index) {
        if (index % 5 != 0) {
            hcamem_free(pool.get(), blocks[index]);
        }
    }
    hcamem_trim(pool.get(), 0);
    for (std::size_t index = 0; index < blocks.size(); index += 5) {
        for (std::size_t offset = 0; offset < MiB; offset += 4 * KiB) {
            ASSERT_EQ(blocks[index][offset], static_cast<char>(index));
        }
        hcamem_free(pool.get(), blocks[index]);
    }
    EXPECT_GT(hcamem_trim(pool.get(), 0), 0U);
    EXPECT_EQ(stats_of(pool.get()).slab_bytes, 0U);
}

TEST_P(Trim, keeps_what_it_is_told_to_keep) {
    hcamem_options chosen = options();
    chosen.growth = 4 * MiB;
    const pool_ptr pool = make_pool(chosen);
    std::vector<void*> blocks(4);
    for (void*& block : blocks) {
        block = hcamem_alloc(pool.get(), 4 * MiB, 0, 0);
    }
    hcamem_free_n(pool.get(), blocks.data(), blocks.size());
    EXPECT_EQ(hcamem_trim(pool.get(), 16 * MiB), 0U);
    EXPECT_EQ(hcamem_trim(pool.get(), 9 * MiB), 8 * MiB);
    EXPECT_EQ(stats_of(pool.get()).slab_bytes, 8 * MiB);
    EXPECT_EQ(hcamem_trim(pool.get(), 0), 8 * MiB);
}

TEST_P(Trim, small_blocks_that_were_all_freed_make_their_slabs_idle) {
    const pool_ptr pool = make_pool(options());
    for (const std::size_t size : {std::size_t{64}, std::size_t{1000}, 20 * KiB}) {
        std::vector<void*> blocks(3 * MiB / size);
        ASSERT_EQ(hcamem_alloc_n(pool.get(), size, blocks.data(), blocks.size()), 0);
        hcamem_free_n(pool.get(), blocks.data(), blocks.size());
    }
    EXPECT_GT(hcamem_trim(pool.get(), 0), 0U);
    EXPECT_EQ(stats_of(pool.get()).slab_bytes, 0U);
}

TEST_P(Trim, a_slab_that_the_HCA_does_not_let_go_is_kept_out_of_use_and_tried_again) {
    const pool_ptr pool = make_pool(options());
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool.get(), domain, &binding), 0);
    void* block = hcamem_alloc(pool.get(), 2 * MiB, 0, 0);
    hcamem_free(pool.get(), block);
    domain.fail_deregistration(EBUSY);
    EXPECT_EQ(hcamem_trim(pool.get(), 0), 0U);
    EXPECT_TRUE(is_accessible(block));
    void* other = hcamem_alloc(pool.get(), 2 * MiB, 0, 0);
    EXPECT_NE(other, block);
    domain.fail_deregistration(0);
    EXPECT_EQ(hcamem_trim(pool.get(), 0), 2 * MiB);
    EXPECT_FALSE(is_accessible(block));
    EXPECT_TRUE(domain.covers(other, hcamem_lkey(binding, other)));
    hcamem_detach(binding);
}

/// A thread that trims the pool whenever it is told to, and takes the processor from the one
/// that made it when it may go on.
class UrgentTrimmer {
  public:
    explicit UrgentTrimmer(hcamem_pool* pool)
        : thread_([this, pool] {
              for (wake_.acquire(); !ended_; wake_.acquire()) {
                  hcamem_trim(pool, 0);
                  ++trims_;
              }
          }) {
        sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
        pthread_setaffinity_np(thread_.native_handle(), sizeof one, &one);
        const sched_param lowest{sched_get_priority_min(SCHED_FIFO)};
        error_ = pthread_setschedparam(thread_.native_handle(), SCHED_FIFO, &lowest);
    }
    UrgentTrimmer(const UrgentTrimmer&) = delete;
    UrgentTrimmer& operator=(const UrgentTrimmer&) = delete;
    ~UrgentTrimmer() {
        ended_ = true;
        wake_.release();
        thread_.join();
        sched_setaffinity(0, sizeof before_, &before_);
    }

    [[nodiscard]] int error() const { return error_; }
    [[nodiscard]] int trims() const { return trims_; }
    void wake() { wake_.release(); }

  private:
    std::counting_semaphore<> wake_{0};
    std::atomic<bool> ended_{false};
    std::atomic<int> trims_{0};
    cpu_set_t before_{};
    int error_ = 0;
    std::thread thread_; // the last: it uses the others
};

TEST_P(Trim, leaves_the_memory_that_an_allocation_just_got) {
    const pool_ptr pool = make_pool(options());
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool.get(), domain, &binding), 0);
    UrgentTrimmer trimmer(pool.get());
    if (trimmer.error() != 0) {
        GTEST_SKIP() << "a thread that takes the processor needs CAP_SYS_NICE";
    }
    // From here on it waits for the lock of the pool that grows.
    domain.on_registration([&] { trimmer.wake(); });
    for (int count = 0; count < 10; ++count) {
        void* block = hcamem_alloc(pool.get(), 3 * MiB, 0, 0);
        ASSERT_NE(block, nullptr) << hcamem_last_message();
        ASSERT_EQ(hcamem_free(pool.get(), block), 0);
        hcamem_trim(pool.get(), 0);
    }
    EXPECT_GE(trimmer.trims(), 10);
    hcamem_detach(binding);
}

} // namespace
