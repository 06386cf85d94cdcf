// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Buffers of one size: each exactly once, all of them whoever caches them, and a reserve.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <hcamem/buffer_pool.hpp>

#include "support/child.hpp"
#include "support/fake_registrar.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

struct destroy_fixed {
    void operator()(hcamem_fixed* from) const noexcept { hcamem_fixed_destroy(from); }
};
using fixed_ptr = std::unique_ptr<hcamem_fixed, destroy_fixed>;

fixed_ptr make_fixed(const pool_ptr& pool, std::size_t bytes, std::uint32_t max,
                     std::uint32_t reserved = 0, std::size_t align = 0) {
    fixed_ptr made(hcamem_fixed_create(pool.get(), bytes, align, max, reserved));
    EXPECT_NE(made, nullptr) << hcamem_last_message();
    return made;
}

std::vector<void*> get_all(hcamem_fixed* from, bool use_reserve = false) {
    std::vector<void*> all;
    while (void* buffer = hcamem_fixed_get(from, use_reserve ? 1 : 0)) {
        all.push_back(buffer);
    }
    EXPECT_EQ(errno, ENOBUFS);
    return all;
}

void put_all(hcamem_fixed* into, const std::vector<void*>& all) {
    for (void* buffer : all) {
        hcamem_fixed_put(into, buffer);
    }
}

struct dimensions {
    std::size_t bytes;
    std::size_t align;
    std::uint32_t max;
};
std::ostream& operator<<(std::ostream& out, const dimensions& d) {
    return out << d.max << " of " << d.bytes << " aligned to " << d.align;
}

class BufferPoolOf : public testing::TestWithParam<dimensions> {};
INSTANTIATE_TEST_SUITE_P(Sizes, BufferPoolOf,
                         testing::Values(dimensions{0, 0, 1}, dimensions{1, 0, 1000},
                                         dimensions{65, 0, 777}, dimensions{256, 256, 4096},
                                         dimensions{4096, 4096, 512}, dimensions{4096, 0, 1},
                                         dimensions{100'000, 0, 37}, dimensions{65536, 65536, 64},
                                         dimensions{3 * MiB, 2 * MiB, 5}));

TEST_P(BufferPoolOf, each_buffer_is_given_once_and_has_its_number) {
    const dimensions d = GetParam();
    const pool_ptr pool = make_pool();
    const fixed_ptr fixed = make_fixed(pool, d.bytes, d.max, 0, d.align);
    for (int round = 0; round < 3; ++round) {
        const std::vector<void*> all = get_all(fixed.get());
        ASSERT_EQ(all.size(), d.max);
        std::set<std::uint32_t> numbers;
        for (void* buffer : all) {
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer) % std::max<std::size_t>(d.align, 64),
                      0U);
            const std::uint32_t number = hcamem_fixed_index(fixed.get(), buffer);
            ASSERT_LT(number, d.max);
            EXPECT_EQ(hcamem_fixed_at(fixed.get(), number), buffer);
            numbers.insert(number);
            std::memset(buffer, static_cast<int>(number), d.bytes);
        }
        EXPECT_EQ(numbers.size(), d.max);
        for (void* buffer : all) {
            const auto number = static_cast<unsigned char>(hcamem_fixed_index(fixed.get(), buffer));
            const auto* bytes = static_cast<unsigned char*>(buffer);
            ASSERT_TRUE(std::all_of(bytes, bytes + d.bytes, [&](unsigned char byte) {
                return byte == number;
            })) << "another buffer lies in it";
        }
        put_all(fixed.get(), all);
    }
    EXPECT_EQ(hcamem_fixed_at(fixed.get(), d.max), nullptr);
}

TEST_P(BufferPoolOf, misuse_is_found_and_changes_nothing) {
    const dimensions d = GetParam();
    const pool_ptr pool = make_pool();
    const fixed_ptr fixed = make_fixed(pool, d.bytes, d.max, 0, d.align);
    auto* buffer = static_cast<char*>(hcamem_fixed_get(fixed.get(), 0));
    ASSERT_NE(buffer, nullptr);
    const auto refused = [&](void* pointer) {
        errno = 0;
        hcamem_fixed_put(fixed.get(), pointer);
        return errno == EINVAL;
    };
    int on_stack = 0;
    EXPECT_TRUE(refused(&on_stack));
    EXPECT_TRUE(refused(reinterpret_cast<void*>(1)));
    EXPECT_TRUE(refused(buffer - 1));
    EXPECT_TRUE(refused(buffer + 1));
    EXPECT_TRUE(refused(buffer + 32));
    if (d.bytes > 64) {
        EXPECT_TRUE(refused(buffer + 64));
    }
    if (d.bytes > 64 * 128) {
        EXPECT_TRUE(refused(buffer + 64 * 128)) << "the same state byte as the buffer's";
    }
    for (std::uint32_t number = 0; number < d.max; ++number) {
        void* other = hcamem_fixed_at(fixed.get(), number);
        EXPECT_TRUE(other == buffer || refused(other)) << "never handed out";
    }
    hcamem_fixed_put(fixed.get(), buffer);
    EXPECT_TRUE(refused(buffer)) << "a double put";
    EXPECT_EQ(get_all(fixed.get()).size(), d.max);
    for (std::uint32_t number = 0; number < d.max; ++number) {
        hcamem_fixed_put(fixed.get(), hcamem_fixed_at(fixed.get(), number));
    }
    EXPECT_TRUE(refused(buffer)) << "a double put after the caches spilled";
}

TEST(BufferPool, all_can_be_out_whatever_other_threads_cache) {
    constexpr std::uint32_t max = 1000;
    const pool_ptr pool = make_pool();
    const fixed_ptr fixed = make_fixed(pool, 256, max);
    std::atomic<int> filled{0};
    std::atomic<bool> done{false};
    std::vector<std::thread> others;
    for (int each = 0; each < 3; ++each) {
        others.emplace_back([&] {
            std::vector<void*> mine;
            for (int count = 0; count < 150; ++count) {
                mine.push_back(hcamem_fixed_get(fixed.get(), 0));
            }
            put_all(fixed.get(), mine);
            ++filled;
            while (!done) { // alive, with a full cache
                std::this_thread::yield();
            }
        });
    }
    while (filled != 3) {
        std::this_thread::yield();
    }
    const std::vector<void*> all = get_all(fixed.get());
    EXPECT_EQ(std::set<void*>(all.begin(), all.end()).size(), max);
    put_all(fixed.get(), all);
    done = true;
    for (std::thread& other : others) {
        other.join();
    }
}

// A thread notes the next buffers that it will take as out. If others take those away and
// hand them over, it may put them all the same.
TEST(BufferPool, what_others_took_out_of_a_threads_cache_it_may_put) {
    constexpr std::uint32_t max = 256;
    const pool_ptr pool = make_pool();
    const fixed_ptr fixed = make_fixed(pool, 4096, max);
    for (int round = 0; round < 20; ++round) {
        void* const own = hcamem_fixed_get(fixed.get(), 0);
        ASSERT_NE(own, nullptr);
        std::vector<void*> others;
        std::thread([&] { others = get_all(fixed.get()); }).join();
        ASSERT_EQ(others.size(), max - 1);
        std::reverse(others.begin(), others.end()); // those of this thread's cache came last
        errno = 0;
        put_all(fixed.get(), others);
        hcamem_fixed_put(fixed.get(), own);
        ASSERT_EQ(errno, 0) << hcamem_last_message();
        hcamem_fixed_put(fixed.get(), own);
        ASSERT_EQ(errno, EINVAL) << "a double put";
        const std::vector<void*> all = get_all(fixed.get());
        ASSERT_EQ(all.size(), max);
        ASSERT_EQ(std::set<void*>(all.begin(), all.end()).size(), max);
        put_all(fixed.get(), all);
    }
}

// Four threads that together never hold more than there are: none may ever be refused, and
// no buffer be given to two.
TEST(BufferPool, none_is_refused_or_given_twice_while_threads_take_from_each_other) {
    constexpr std::uint32_t max = 64;
    constexpr int threads = 4;
    constexpr std::size_t most = max / threads;
    const pool_ptr pool = make_pool();
    const fixed_ptr fixed = make_fixed(pool, 64, max);
    std::array<std::atomic<int>, max> holder{};
    std::atomic<int> wrong{0};
    std::vector<std::thread> all;
    for (int each = 1; each <= threads; ++each) {
        all.emplace_back([&, each] {
            std::uint32_t random = static_cast<std::uint32_t>(each) * 2654435761U;
            std::vector<void*> mine;
            for (int count = 0; count < 20000; ++count) {
                random = random * 1664525U + 1013904223U;
                if (mine.size() < most && (random >> 16 & 3) != 0) {
                    void* buffer = hcamem_fixed_get(fixed.get(), 0);
                    if (buffer == nullptr ||
                        holder[hcamem_fixed_index(fixed.get(), buffer)].exchange(each) != 0) {
                        ++wrong;
                        continue;
                    }
                    mine.push_back(buffer);
                } else if (!mine.empty()) {
                    std::swap(mine[random >> 8 & (mine.size() - 1)], mine.back());
                    if (holder[hcamem_fixed_index(fixed.get(), mine.back())].exchange(0) != each) {
                        ++wrong;
                    }
                    hcamem_fixed_put(fixed.get(), mine.back());
                    mine.pop_back();
                }
            }
            put_all(fixed.get(), mine);
            for (void* buffer : mine) {
                holder[hcamem_fixed_index(fixed.get(), buffer)] = 0;
            }
        });
    }
    for (std::thread& each : all) {
        each.join();
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(get_all(fixed.get()).size(), max);
    for (std::uint32_t number = 0; number < max; ++number) {
        hcamem_fixed_put(fixed.get(), hcamem_fixed_at(fixed.get(), number));
    }
}

TEST(BufferPool, a_thread_that_never_gets_may_put_and_one_that_ends_keeps_nothing) {
    const pool_ptr pool = make_pool();
    const fixed_ptr fixed = make_fixed(pool, 4096, 100);
    for (int round = 0; round < 5; ++round) {
        const std::vector<void*> all = get_all(fixed.get());
        ASSERT_EQ(all.size(), 100U);
        std::thread([&] { put_all(fixed.get(), all); }).join();
    }
}

TEST(BufferPool, the_reserve_is_for_those_who_ask_for_it) {
    const pool_ptr pool = make_pool();
    const fixed_ptr fixed = make_fixed(pool, 4096, 100, 30);
    const std::vector<void*> senders = get_all(fixed.get());
    EXPECT_EQ(senders.size(), 70U);
    EXPECT_NE(std::string(hcamem_last_message()).find("reserve of 30"), std::string::npos)
        << hcamem_last_message();
    std::vector<void*> receivers = get_all(fixed.get(), true);
    EXPECT_EQ(receivers.size(), 30U);
    put_all(fixed.get(), receivers);
    EXPECT_EQ(hcamem_fixed_get(fixed.get(), 0), nullptr) << "a receive's went to a sender";
    put_all(fixed.get(), senders);
    receivers = get_all(fixed.get(), true);
    EXPECT_EQ(receivers.size(), 100U);
    put_all(fixed.get(), receivers);
    // All of them reserved.
    const fixed_ptr only = make_fixed(pool, 64, 3, 3);
    EXPECT_TRUE(get_all(only.get()).empty());
    const std::vector<void*> three = get_all(only.get(), true);
    EXPECT_EQ(three.size(), 3U);
    put_all(only.get(), three);
}

TEST(BufferPool, many_at_once_are_all_or_none) {
    constexpr std::uint32_t max = 1000;
    const pool_ptr pool = make_pool();
    const fixed_ptr fixed = make_fixed(pool, 100, max, 100);
    std::vector<void*> some(900);
    for (const std::size_t n : {1U, 64U, 300U, 900U}) { // less and more than a cache has
        ASSERT_EQ(hcamem_fixed_get_n(fixed.get(), some.data(), n, 0), 0);
        EXPECT_EQ(std::set<void*>(some.begin(), some.begin() + static_cast<long>(n)).size(), n);
        ASSERT_EQ(hcamem_fixed_put_n(fixed.get(), some.data(), n), 0);
    }
    std::vector<void*> more(max + 1);
    EXPECT_EQ(hcamem_fixed_get_n(fixed.get(), more.data(), 901, 0), -ENOBUFS);
    EXPECT_EQ(hcamem_fixed_get_n(fixed.get(), more.data(), max + 1, 1), -ENOBUFS);
    EXPECT_EQ(hcamem_fixed_get_n(fixed.get(), more.data(), max, 1), 0);
    EXPECT_EQ(hcamem_fixed_put_n(fixed.get(), more.data(), max), 0);
    EXPECT_EQ(hcamem_fixed_get_n(fixed.get(), nullptr, 0, 0), 0);
    EXPECT_EQ(hcamem_fixed_get_n(fixed.get(), nullptr, 1, 0), -EINVAL);
    EXPECT_EQ(hcamem_fixed_put_n(fixed.get(), nullptr, 1), -EINVAL);
    // A bad one among them, first, in the middle and last.
    for (const std::size_t bad : {0U, 5U, 9U}) {
        std::array<void*, 10> ten{};
        ASSERT_EQ(hcamem_fixed_get_n(fixed.get(), ten.data(), ten.size(), 0), 0);
        void* const good = std::exchange(ten[bad], &ten);
        EXPECT_EQ(hcamem_fixed_put_n(fixed.get(), ten.data(), ten.size()), -EINVAL);
        ten[bad] = nullptr;
        hcamem_fixed_put(fixed.get(), good);
    }
    EXPECT_EQ(get_all(fixed.get(), true).size(), max) << "one was lost";
    for (std::uint32_t number = 0; number < max; ++number) {
        hcamem_fixed_put(fixed.get(), hcamem_fixed_at(fixed.get(), number));
    }
}

// After one was got the thread has noted the next, and many at once are those.
TEST(BufferPool, many_at_once_may_be_noted_already) {
    for (const std::size_t n : {1U, 2U, 8U, 31U, 40U}) {
        const pool_ptr pool = make_pool();
        const fixed_ptr fixed = make_fixed(pool, 100, 1000);
        std::vector<void*> got(n);
        void* const first = hcamem_fixed_get(fixed.get(), 0);
        ASSERT_EQ(hcamem_fixed_get_n(fixed.get(), got.data(), n, 0), 0);
        EXPECT_EQ(std::set<void*>(got.begin(), got.end()).size(), n);
        EXPECT_EQ(std::count(got.begin(), got.end(), first), 0);
        EXPECT_EQ(hcamem_fixed_put_n(fixed.get(), got.data(), n), 0);
        EXPECT_EQ(hcamem_fixed_put_n(fixed.get(), got.data(), n), -EINVAL);
        hcamem_fixed_put(fixed.get(), first);
        const std::vector<void*> all = get_all(fixed.get());
        EXPECT_EQ(std::set<void*>(all.begin(), all.end()).size(), 1000U);
        put_all(fixed.get(), all);
    }
}

// Neighbours are handled several at a time: each number of them, up and down, and with one
// in each place that is not the next.
TEST(BufferPool, runs_of_each_length_keep_their_order_and_what_breaks_them_is_seen) {
    constexpr std::uint32_t max = 1000;
    const pool_ptr pool = make_pool();
    const fixed_ptr fixed = make_fixed(pool, 100, max);
    for (std::size_t n = 2; n <= 20; ++n) {
        for (const bool falling : {false, true}) {
            for (std::size_t strange = 0; strange <= n; ++strange) { // n: none is
                std::vector<void*> run = get_all(fixed.get());
                std::sort(run.begin(), run.end());
                put_all(fixed.get(), {run.begin() + static_cast<long>(n) + 1, run.end()});
                void* const other = run[n];
                run.resize(n);
                if (falling) {
                    std::reverse(run.begin(), run.end());
                }
                void* const left_out = strange < n ? std::exchange(run[strange], other) : other;
                ASSERT_EQ(hcamem_fixed_put_n(fixed.get(), run.data(), n), 0);
                std::vector<void*> again(n);
                ASSERT_EQ(hcamem_fixed_get_n(fixed.get(), again.data(), n, 0), 0);
                ASSERT_EQ(std::set<void*>(again.begin(), again.end()),
                          std::set<void*>(run.begin(), run.end()));
                ASSERT_EQ(hcamem_fixed_put_n(fixed.get(), again.data(), n), 0);
                ASSERT_EQ(hcamem_fixed_put_n(fixed.get(), again.data(), n), -EINVAL);
                hcamem_fixed_put(fixed.get(), left_out);
            }
        }
    }
    EXPECT_EQ(get_all(fixed.get()).size(), max);
    for (std::uint32_t number = 0; number < max; ++number) {
        hcamem_fixed_put(fixed.get(), hcamem_fixed_at(fixed.get(), number));
    }
}

TEST(BufferPool, destroyed_with_buffers_out_it_ends_with_the_last) {
    const pool_ptr pool = make_pool();
    fixed_ptr fixed = make_fixed(pool, 4096, 50, 10);
    void* buffer = hcamem_fixed_get(fixed.get(), 0);
    const std::vector<void*> rest = get_all(fixed.get(), true);
    put_all(fixed.get(), rest); // into this thread's cache
    hcamem_fixed* const handle = fixed.release();
    EXPECT_EQ(hcamem_fixed_destroy(handle), -EBUSY);
    EXPECT_NE(std::string(hcamem_last_message()).find("1 of 50"), std::string::npos)
        << hcamem_last_message();
    EXPECT_EQ(hcamem_fixed_get(handle, 1), nullptr);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(hcamem_fixed_destroy(handle), -EBUSY);
    std::memset(buffer, 1, 4096);
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 1U);
    std::thread([&] { hcamem_fixed_put(handle, buffer); }).join();
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 0U);
    EXPECT_EQ(hcamem_fixed_destroy(handle), -EINVAL) << "the handle is dead";
    EXPECT_EQ(hcamem_fixed_get(handle, 0), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST(BufferPool, keeps_its_pool_alive) {
    pool_ptr pool = make_pool();
    fixed_ptr fixed = make_fixed(pool, 4096, 50);
    EXPECT_EQ(hcamem_pool_close(pool.get()), -EBUSY);
    void* buffer = hcamem_fixed_get(fixed.get(), 0);
    ASSERT_NE(buffer, nullptr);
    std::memset(buffer, 1, 4096);
    hcamem_fixed_put(fixed.get(), buffer);
    EXPECT_EQ(hcamem_fixed_destroy(fixed.release()), 0);
    EXPECT_EQ(hcamem_pool_close(pool.release()), 0);
}

TEST(BufferPool, refuses_what_makes_no_sense) {
    const pool_ptr pool = make_pool();
    const auto refused = [&](std::size_t bytes, std::size_t align, std::uint32_t max,
                             std::uint32_t reserved) {
        errno = 0;
        return hcamem_fixed_create(pool.get(), bytes, align, max, reserved) == nullptr ? errno : 0;
    };
    EXPECT_EQ(refused(64, 0, 0, 0), EINVAL);
    EXPECT_EQ(refused(64, 0, 10, 11), EINVAL);
    EXPECT_EQ(refused(64, 3, 10, 0), EINVAL);
    EXPECT_EQ(refused(64, 4 * MiB, 10, 0), EINVAL);
    EXPECT_EQ(refused(SIZE_MAX, 0, 10, 0), EINVAL);
    EXPECT_EQ(refused(GiB, 0, UINT32_MAX, 0), EINVAL);
    EXPECT_EQ(refused(4096, 0, UINT32_MAX, 0), ENOMEM) << "more than the pool's maximum";
    EXPECT_NE(std::string(hcamem_last_message()).find("HCAMEM_MAXIMUM"), std::string::npos);
    EXPECT_EQ(hcamem_fixed_create(nullptr, 64, 0, 1, 0), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(hcamem_fixed_get(nullptr, 0), nullptr);
    EXPECT_EQ(errno, EINVAL);
    hcamem_fixed_put(nullptr, nullptr);
    EXPECT_EQ(hcamem_fixed_destroy(nullptr), 0);
    EXPECT_EQ(hcamem_fixed_index(nullptr, &errno), UINT32_MAX);
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 0U) << "something was kept after a refusal";
}

TEST(BufferPool, is_the_parents_in_a_child) {
    for (const birth how : {birth::fork, birth::clone}) {
        const pool_ptr pool = make_pool();
        const fixed_ptr fixed = make_fixed(pool, 4096, 50);
        void* buffer = hcamem_fixed_get(fixed.get(), 0);
        hcamem_fixed_put(fixed.get(), hcamem_fixed_get(fixed.get(), 0)); // the cache has some
        EXPECT_EQ(run_in_child(how,
                               [&] {
                                   if (hcamem_fixed_get(fixed.get(), 1) != nullptr ||
                                       errno != ESTALE) {
                                       return 1;
                                   }
                                   void* two[2] = {};
                                   if (hcamem_fixed_get_n(fixed.get(), two, 2, 0) != -ESTALE) {
                                       return 2;
                                   }
                                   hcamem_fixed_put(fixed.get(), buffer);
                                   hcamem_fixed_put(fixed.get(), buffer);
                                   return hcamem_fixed_destroy(fixed.get()) == 0 ? 0 : 3;
                               }),
                  0);
        hcamem_fixed_put(fixed.get(), buffer);
        EXPECT_EQ(get_all(fixed.get()).size(), 50U);
        for (std::uint32_t number = 0; number < 50; ++number) {
            hcamem_fixed_put(fixed.get(), hcamem_fixed_at(fixed.get(), number));
        }
    }
}

TEST(BufferPool, of_a_child_works) {
    const pool_ptr parents = make_pool();
    const fixed_ptr fixed = make_fixed(parents, 4096, 50);
    hcamem_fixed_put(fixed.get(), hcamem_fixed_get(fixed.get(), 0));
    EXPECT_EQ(run_in_child(birth::fork,
                           [&] {
                               const pool_ptr pool = make_pool();
                               const fixed_ptr own = make_fixed(pool, 4096, 50);
                               const std::vector<void*> all = get_all(own.get());
                               put_all(own.get(), all);
                               return all.size() == 50 ? 0 : 1;
                           }),
              0);
}

TEST(BufferPool, one_key_covers_it) {
    const pool_ptr pool = make_pool();
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool.get(), domain, &binding), 0);
    const fixed_ptr fixed = make_fixed(pool, 64 * KiB, 200);
    const std::uint32_t lkey = hcamem_lkey(binding, hcamem_fixed_at(fixed.get(), 0));
    EXPECT_NE(lkey, 0U);
    for (std::uint32_t number = 0; number < 200; ++number) {
        auto* buffer = static_cast<char*>(hcamem_fixed_at(fixed.get(), number));
        EXPECT_TRUE(domain.covers(buffer, lkey) && domain.covers(buffer + 64 * KiB - 1, lkey));
    }
    EXPECT_EQ(hcamem_detach(binding), 0);
}

TEST(BufferPool, in_cpp) {
    hcamem::options options;
    static_cast<hcamem_options&>(options) = test_options();
    const hcamem::pool pool(options);
    hcamem::buffer_pool buffers(pool, 4096, 100, 10);
    EXPECT_EQ(buffers.max(), 100U);
    EXPECT_EQ(buffers.bytes(), 4096U);
    EXPECT_EQ(buffers.owner(), pool);
    void* buffer = buffers.get();
    ASSERT_NE(buffer, nullptr);
    EXPECT_EQ(buffers.at(buffers.index(buffer)), buffer);
    EXPECT_EQ(buffers.index(static_cast<char*>(buffer) + 64), UINT32_MAX);
    EXPECT_EQ(buffers.index(&pool), UINT32_MAX);
    buffers.put(buffer);
    buffers.put(nullptr);
    std::array<void*, 90> all{};
    ASSERT_TRUE(buffers.get_n(all));
    EXPECT_EQ(buffers.get(), nullptr);
    EXPECT_EQ(errno, ENOBUFS);
    void* received = buffers.get_reserved();
    EXPECT_NE(received, nullptr);
    buffers.put(received);
    buffers.put_n(all);
    hcamem::buffer_pool moved = std::move(buffers);
    EXPECT_TRUE(moved.get_n(all));
    moved.put_n(all);
    EXPECT_THROW(hcamem::buffer_pool(pool, GiB, 1), hcamem::exhausted);
    EXPECT_THROW(hcamem::buffer_pool(pool, 64, 0), hcamem::error);
}

TEST(BufferPoolDeathTest, misuse_aborts_unless_told_otherwise) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    hcamem_options options = test_options();
    options.flags = 0;
    const pool_ptr pool = make_pool(options);
    const fixed_ptr fixed = make_fixed(pool, 4096, 10);
    void* buffer = hcamem_fixed_get(fixed.get(), 0);
    hcamem_fixed_put(fixed.get(), buffer);
    EXPECT_DEATH(hcamem_fixed_put(fixed.get(), buffer), "not out: it was put back before");
    EXPECT_DEATH(hcamem_fixed_put(fixed.get(), &options), "not a buffer of this pool");
}

} // namespace
