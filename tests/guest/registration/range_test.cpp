// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Registrations of a part of a slab: hcamem_register().
#include <gtest/gtest.h>

#include <cerrno>

#include "pool_fixture.hpp"
#include "support/child.hpp"

using namespace support;

namespace {

class Range {
  public:
    Range(const hcamem::pool& pool, const Pd& pd, void* address, std::size_t bytes,
          int access = remote_access) {
        result_ = hcamem_register(pool.c_handle(), pd.get(), address, bytes, access, &made_);
    }
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;
    ~Range() { hcamem_unregister(made_); }

    [[nodiscard]] int result() const { return result_; }
    [[nodiscard]] hcamem_key key() const {
        hcamem_key key{};
        EXPECT_EQ(hcamem_registration_key(made_, &key), 0);
        return key;
    }
    [[nodiscard]] hcamem_registration* get() const { return made_; }

  private:
    hcamem_registration* made_ = nullptr;
    int result_ = 0;
};

} // namespace

TEST(RangeRegistration, odd_parts_carry_data_and_no_more_than_themselves) {
    const Context context;
    const Pd pd(context);
    hcamem::pool pool = device_pool();
    const Loopback link(context, pd);
    const hcamem::buffer block = pool.make_buffer(300 * KiB);
    unsigned char* const bytes = bytes_of(block).data();
    constexpr std::size_t length = 50001;
    const Range from(pool, pd, bytes + 0x4150, length);
    const Range to(pool, pd, bytes + 0x20007, length);
    ASSERT_EQ(from.result(), 0) << hcamem_last_message();
    ASSERT_EQ(to.result(), 0) << hcamem_last_message();
    EXPECT_EQ(from.key().path, expected_path());
    EXPECT_EQ(from.key().access, static_cast<unsigned>(remote_access));
    fill({bytes + 0x4150, length}, 5);
    const Place source{bytes + 0x4150, length, from.key().lkey, from.key().rkey};
    const Place target{bytes + 0x20007, length, to.key().lkey, to.key().rkey};
    ASSERT_EQ(link.write(source, target), IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({bytes + 0x20007, length}, 5));
    EXPECT_EQ(bytes[0x20006], 0);
    EXPECT_EQ(bytes[0x20007 + length], 0);
    const Place beyond{bytes + 0x20008, length, to.key().lkey, to.key().rkey};
    EXPECT_EQ(link.write(source, beyond), IBV_WC_REM_ACCESS_ERR);
}

TEST(RangeRegistration, stays_after_the_pool_is_closed) {
    const Context context;
    const Pd pd(context);
    hcamem_registration* made = nullptr;
    hcamem_options options = device_options();
    hcamem_pool* pool = nullptr;
    ASSERT_EQ(hcamem_pool_create(&options, &pool), 0);
    void* const block = hcamem_alloc(pool, 1 * MiB, 0, 0);
    ASSERT_EQ(hcamem_register(pool, pd.get(), block, 1 * MiB, remote_access, &made), 0);
    EXPECT_EQ(hcamem_pool_close(pool), -EBUSY);
    EXPECT_EQ(hcamem_unregister(made), 0);
    EXPECT_EQ(hcamem_free(pool, block), 0);
}

TEST(RangeRegistration, a_child_leaves_its_parents_alone) {
    const Context context;
    const Pd pd(context);
    hcamem::pool pool = device_pool();
    const Loopback link(context, pd);
    const hcamem::buffer block = pool.make_buffer(8 * KiB);
    const Range range(pool, pd, block.data(), block.size());
    ASSERT_EQ(range.result(), 0);
    EXPECT_TRUE(succeeds_in_child({}, [&](Channel&) {
        hcamem_key key{};
        require(hcamem_registration_key(range.get(), &key) == 0 && key.lkey == 0,
                "a child has its parent's keys");
        require(hcamem_unregister(range.get()) == 0, "unregister in a child");
    }));
    const Place half{block.data(), 4 * KiB, range.key().lkey, range.key().rkey};
    const Place other{block.data() + 4 * KiB, 4 * KiB, range.key().lkey, range.key().rkey};
    EXPECT_EQ(link.write(half, other), IBV_WC_SUCCESS);
}

TEST(RangeRegistration, what_is_no_range_of_one_slab_is_refused) {
    const Context context;
    const Pd pd(context);
    hcamem::pool pool = device_pool();
    const hcamem::buffer block = pool.make_buffer(8 * KiB);
    int local = 0;
    EXPECT_EQ(Range(pool, pd, &local, sizeof local).result(), -EINVAL);
    EXPECT_EQ(Range(pool, pd, block.data(), 0).result(), -EINVAL);
    EXPECT_EQ(Range(pool, pd, block.data(), SIZE_MAX).result(), -EINVAL);
    EXPECT_EQ(Range(pool, pd, block.data(), 64 * MiB).result(), -EINVAL);
    EXPECT_EQ(Range(pool, pd, block.data(), 4096, IBV_ACCESS_REMOTE_WRITE).result(), -EINVAL);
    EXPECT_EQ(hcamem_register(nullptr, pd.get(), block.data(), 1, 0, nullptr), -EINVAL);
    EXPECT_EQ(hcamem_unregister(nullptr), 0);
}
