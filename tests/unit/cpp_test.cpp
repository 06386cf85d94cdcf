// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The C++ interface: pool, buffer, allocator, memory_resource, exceptions.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory_resource>
#include <new>
#include <numeric>
#include <set>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hcamem/allocator.hpp>
#include <hcamem/binding.hpp>
#include <hcamem/buffer.hpp>
#include <hcamem/memory_resource.hpp>
#include <hcamem/pool.hpp>

#include "support/child.hpp"
#include "support/fake_registrar.hpp"
#include "support/mapped.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;
using namespace std::chrono_literals;

hcamem::pool make(std::uint64_t maximum = 64 * MiB) {
    hcamem::options options;
    static_cast<hcamem_options&>(options) = test_options();
    options.maximum = maximum;
    return hcamem::pool(options);
}

static_assert(!std::is_default_constructible_v<hcamem::allocator<int>>);
static_assert(!std::is_copy_constructible_v<hcamem::binding>);
static_assert(std::is_nothrow_move_constructible_v<hcamem::binding>);
static_assert(!std::is_copy_constructible_v<hcamem::buffer>);
static_assert(std::is_nothrow_move_assignable_v<hcamem::buffer>);
static_assert(std::is_nothrow_copy_constructible_v<hcamem::exhausted>);
static_assert(std::is_base_of_v<std::bad_alloc, hcamem::exhausted>);
static_assert(!std::is_base_of_v<std::system_error, hcamem::exhausted>);
static_assert(std::is_base_of_v<std::system_error, hcamem::error>);

TEST(CppPool, copies_are_the_same_pool_and_the_last_handle_closes_it) {
    void* block = nullptr;
    {
        const hcamem::pool one = make();
        hcamem::pool two = one;
        EXPECT_EQ(one, two);
        EXPECT_FALSE(one == make());
        block = two.allocate(100);
        EXPECT_TRUE(one.owns(block));
        EXPECT_GE(one.usable(block), 100U);
        two.deallocate(block, 100);
        EXPECT_EQ(one.source(), static_cast<int>(test_source()));
        EXPECT_FALSE(one.closed());
        EXPECT_TRUE(is_accessible(block));
    }
    EXPECT_FALSE(is_accessible(block));
}

TEST(CppPool, exhaustion_throws_returns_null_or_waits) {
    hcamem::pool pool = make(2 * MiB);
    void* all = pool.allocate(2 * MiB);
    EXPECT_EQ(pool.try_allocate(1), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    try {
        static_cast<void>(pool.allocate(1));
        FAIL();
    } catch (const hcamem::exhausted& caught) {
        EXPECT_EQ(caught.code(), std::errc::not_enough_memory);
        EXPECT_NE(std::strstr(caught.what(), "HCAMEM_MAXIMUM"), nullptr) << caught.what();
    }
    EXPECT_THROW(static_cast<void>(pool.allocate(1)), std::bad_alloc);
    EXPECT_THROW(static_cast<void>(pool.allocate(1)), std::exception) << "one unambiguous base";
    try {
        static_cast<void>(pool.allocate_for(1, 1500us));
        FAIL();
    } catch (const hcamem::exhausted& caught) {
        EXPECT_EQ(caught.code(), std::errc::timed_out);
        EXPECT_NE(std::strstr(caught.what(), "2 ms"), nullptr) << "rounded up: " << caught.what();
    }
    pool.deallocate(all);
    void* block = pool.allocate_for(1, -1ms);
    EXPECT_NE(block, nullptr);
    pool.deallocate(block);
    EXPECT_EQ(pool.trim(), 2 * MiB);
}

TEST(CppPool, other_failures_throw_error_with_errno_and_message) {
    hcamem::pool pool = make();
    try {
        static_cast<void>(pool.allocate(1, 3));
        FAIL();
    } catch (const hcamem::error& caught) {
        EXPECT_EQ(caught.code(), std::errc::invalid_argument);
        EXPECT_NE(std::strstr(caught.what(), "power of two"), nullptr) << caught.what();
    }
    hcamem::options options;
    options.source = HCAMEM_DEVICE;
    options.hca = "no_such_hca";
    EXPECT_THROW(hcamem::pool{options}, hcamem::error);
    EXPECT_THROW(static_cast<void>(pool.attach(nullptr)), hcamem::error);
}

TEST(CppPool, many_blocks_at_once) {
    hcamem::pool pool = make(2 * MiB);
    std::vector<void*> blocks(100);
    pool.allocate_n(10 * KiB, blocks);
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), 100U);
    std::vector<void*> more(200);
    EXPECT_THROW(pool.allocate_n(10 * KiB, more), hcamem::exhausted);
    pool.deallocate_n(blocks);
    EXPECT_EQ(pool.stats().live_blocks, 0U);
}

TEST(CppPool, a_pool_of_the_C_interface_can_be_taken_over) {
    hcamem::pool pool = hcamem::pool::adopt(make_pool().release());
    pool.deallocate(pool.allocate(1));
    EXPECT_EQ(hcamem_closed(pool.c_handle()), 0);
}

TEST(CppPool, R12_is_closed_in_a_child_where_destruction_is_harmless) {
    hcamem::pool pool = make();
    auto buffer = std::make_unique<hcamem::buffer>(pool.make_buffer(100));
    auto vector = std::make_unique<std::vector<int, hcamem::allocator<int>>>(1000, 7, pool);
    EXPECT_EQ(run_in_child(birth::fork,
                           [&] {
                               if (!pool.closed()) {
                                   return 1;
                               }
                               try {
                                   vector->reserve(100000);
                                   return 2;
                               } catch (const hcamem::error& caught) {
                                   if (caught.code() != std::errc(ESTALE)) {
                                       return 3;
                                   }
                               }
                               buffer.reset();
                               vector.reset();
                               return 0;
                           }),
              0);
    EXPECT_EQ(std::accumulate(vector->begin(), vector->end(), 0), 7000);
}

TEST(CppBuffer, gives_its_block_back) {
    hcamem::pool pool = make();
    {
        hcamem::buffer one = pool.make_buffer(1000, 4096);
        EXPECT_EQ(one.size(), 1000U);
        EXPECT_EQ(one.span().size(), 1000U);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one.data()) % 4096, 0U);
        hcamem::buffer two = std::move(one);
        EXPECT_EQ(one.data(), nullptr);
        one = pool.make_buffer(50);
        two = std::move(one);
        EXPECT_EQ(two.size(), 50U);
        EXPECT_EQ(pool.stats().live_blocks, 1U);
        hcamem::buffer three = pool.make_buffer(10);
        void* released = three.release();
        EXPECT_EQ(three.data(), nullptr);
        pool.deallocate(released, 10);
    }
    EXPECT_EQ(pool.stats().live_blocks, 0U);
}

TEST(CppBuffer, keeps_the_pool_alive) {
    std::unique_ptr<hcamem::buffer> buffer;
    {
        hcamem::pool pool = make();
        buffer = std::make_unique<hcamem::buffer>(pool.make_buffer(100));
    }
    std::memset(buffer->data(), 1, 100);
    void* again = hcamem::pool(buffer->get_pool()).allocate(1);
    EXPECT_NE(again, nullptr);
    hcamem::pool(buffer->get_pool()).deallocate(again);
}

TEST(CppBinding, gives_keys_and_scatter_gather_entries) {
    hcamem::pool pool = make();
    fake_domain domain;
    hcamem_binding* made = nullptr;
    ASSERT_EQ(attach(pool.c_handle(), domain, &made), 0);
    {
        hcamem::binding first(made);
        hcamem::binding binding = std::move(first);
        EXPECT_FALSE(first);
        EXPECT_TRUE(binding);
        EXPECT_EQ(first.lkey(&pool), 0U);
        const hcamem::buffer buffer = pool.make_buffer(5000);
        const ibv_sge whole = buffer.sge(binding);
        EXPECT_EQ(whole.addr, reinterpret_cast<std::uintptr_t>(buffer.data()));
        EXPECT_EQ(whole.length, 5000U);
        EXPECT_TRUE(domain.covers(buffer.data(), whole.lkey));
        EXPECT_EQ(binding.sge(buffer.data() + 10, 20).addr, whole.addr + 10);
        EXPECT_EQ(binding.key(buffer.data()).rkey, binding.rkey(buffer.data()));
        int on_stack = 0;
        EXPECT_THROW(static_cast<void>(binding.sge(&on_stack, 4)), hcamem::error);
        EXPECT_THROW(static_cast<void>(binding.key(&on_stack)), hcamem::error);
        EXPECT_THROW(static_cast<void>(binding.sge(buffer.data(), 100 * MiB)), hcamem::error);
        EXPECT_THROW(static_cast<void>(binding.sge(buffer.data(), SIZE_MAX)), hcamem::error);
        domain.fail_deregistration(EBUSY);
        EXPECT_THROW(binding.detach(), hcamem::error);
        domain.fail_deregistration(0);
        EXPECT_EQ(binding.lkey(buffer.data()), whole.lkey);
    }
    EXPECT_EQ(domain.registered(), 0U) << "detached by the destructor";
}

TEST(CppBinding, may_outlive_the_pools_handles) {
    fake_domain domain;
    hcamem::binding binding;
    {
        hcamem::pool pool = make();
        hcamem_binding* made = nullptr;
        ASSERT_EQ(attach(pool.c_handle(), domain, &made), 0);
        binding = hcamem::binding(made);
        const hcamem::buffer buffer = pool.make_buffer(10);
        EXPECT_EQ(domain.registered(), 1U);
    }
    EXPECT_EQ(domain.registered(), 0U);
    EXPECT_EQ(binding.lkey(&domain), 0U);
}

template <class Container>
class CppContainer : public testing::Test {};

template <class T>
using alloc = hcamem::allocator<T>;
struct alignas(4096) page {
    int number;
    page(int n = 0) : number(n) {}
    friend bool operator==(const page& a, const page& b) { return a.number == b.number; }
};

using sequences = testing::Types<std::vector<int, alloc<int>>, std::vector<bool, alloc<bool>>,
                                 std::deque<int, alloc<int>>, std::list<int, alloc<int>>,
                                 std::forward_list<int, alloc<int>>, std::vector<page, alloc<page>>,
                                 std::list<page, alloc<page>>>;
TYPED_TEST_SUITE(CppContainer, sequences);

template <class Container>
std::size_t length(const Container& c) {
    return static_cast<std::size_t>(std::distance(c.begin(), c.end()));
}

TYPED_TEST(CppContainer, works_within_one_pool_and_across_two) {
    using value = typename TypeParam::value_type;
    const hcamem::pool one = make();
    const hcamem::pool two = make();
    const hcamem::allocator<value> in_one{one};
    const hcamem::allocator<value> in_two{two};
    TypeParam a(300, value(1), in_one);
    TypeParam b(200, value(0), in_two);

    TypeParam copy = a;
    EXPECT_EQ(copy.get_allocator(), a.get_allocator());
    b = a; // copy assignment keeps the target's pool
    EXPECT_EQ(b.get_allocator(), in_two);
    EXPECT_EQ(length(b), 300U);
    EXPECT_TRUE(b == a);

    b = std::move(copy); // move assignment takes the source's pool along
    EXPECT_EQ(b.get_allocator(), in_one);
    EXPECT_EQ(length(b), 300U);
    copy = TypeParam(5, value(1), in_two); // what was moved from can be used
    EXPECT_EQ(length(copy), 5U);

    TypeParam c(7, value(0), in_two);
    std::swap(a, c);
    EXPECT_EQ(a.get_allocator(), in_two);
    EXPECT_EQ(c.get_allocator(), in_one);
    EXPECT_EQ(length(a), 7U);
    EXPECT_EQ(length(c), 300U);

    const TypeParam moved(std::move(c), in_two); // element by element into the other pool
    EXPECT_EQ(moved.get_allocator(), in_two);
    EXPECT_EQ(length(moved), 300U);
    EXPECT_GT(one.stats().live_blocks + two.stats().live_blocks, 0U);
}

TEST(CppAllocator, works_in_maps_sets_and_strings) {
    const hcamem::pool pool = make();
    {
        std::map<int, int, std::less<>, alloc<std::pair<const int, int>>> map{pool};
        std::unordered_map<int, int, std::hash<int>, std::equal_to<>,
                           alloc<std::pair<const int, int>>>
            table{8, alloc<std::pair<const int, int>>{pool}};
        std::basic_string<char, std::char_traits<char>, alloc<char>> text{pool};
        for (int index = 0; index < 1000; ++index) {
            map[index] = index;
            table[index] = index;
            text += 'x';
        }
        EXPECT_EQ(map.at(999), 999);
        EXPECT_EQ(table.at(999), 999);
        EXPECT_TRUE(pool.owns(text.data()));
        EXPECT_TRUE(pool.owns(&map.at(5)));
        EXPECT_TRUE(pool.owns(&table.at(5)));
    }
    EXPECT_EQ(pool.stats().live_blocks, 0U);
}

TEST(CppAllocator, over_aligned_types_are_aligned) {
    const hcamem::pool pool = make();
    const std::vector<page, alloc<page>> pages(3, page(1), pool);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.data()) % 4096, 0U);
}

TEST(CppAllocator, sizes_that_overflow_are_refused) {
    hcamem::allocator<page> allocator{make()};
    EXPECT_THROW(static_cast<void>(allocator.allocate(SIZE_MAX / 4096 + 2)),
                 std::bad_array_new_length);
    EXPECT_THROW(static_cast<void>(allocator.allocate(SIZE_MAX / 8192)), hcamem::exhausted);
}

TEST(CppMemoryResource, serves_pmr_containers) {
    const hcamem::pool pool = make();
    hcamem::memory_resource one(pool);
    hcamem::memory_resource two(pool);
    hcamem::memory_resource other(make());
    EXPECT_TRUE(one.is_equal(two));
    EXPECT_FALSE(one.is_equal(other));
    EXPECT_FALSE(one.is_equal(*std::pmr::new_delete_resource()));
    {
        std::pmr::vector<std::pmr::string> texts(&one);
        for (int index = 0; index < 100; ++index) {
            texts.emplace_back(1000, 'y');
        }
        EXPECT_TRUE(pool.owns(texts.data()));
        EXPECT_TRUE(pool.owns(texts.back().data()));
    }
    EXPECT_EQ(pool.stats().live_blocks, 0U);
    void* aligned = one.allocate(10, 8192);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 8192, 0U);
    two.deallocate(aligned, 10, 8192);
}

} // namespace
