// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A peer with an rkey may write over every byte of every slab: the allocator must not
// care, since it keeps nothing there.
#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "heap/annotate.h"
#include "support/fake_registrar.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

TEST(HostilePeer, overwriting_every_slab_leaves_the_allocator_working) {
    hcamem_options options = test_options();
    options.maximum = 64 * MiB;
    const pool_ptr pool = make_pool(options);
    fake_domain domain;
    hcamem_binding* binding = nullptr;
    ASSERT_EQ(attach(pool.get(), domain, &binding), 0);
    std::vector<void*> live;
    std::vector<void*> freed;
    for (std::size_t size = 64; size <= 2 * MiB; size += size / 3) {
        for (std::vector<void*>* into : {&live, &freed}) {
            into->push_back(hcamem_alloc(pool.get(), size, 0, 0));
            ASSERT_NE(into->back(), nullptr) << hcamem_last_message();
        }
    }
    std::set<ibv_mr*> slabs;
    for (const std::vector<void*>* from : {&live, &freed}) {
        for (const void* block : *from) {
            hcamem_key key{};
            ASSERT_EQ(hcamem_key_of(binding, block, &key), 0);
            slabs.insert(key.mr);
        }
    }
    ASSERT_EQ(hcamem_free_n(pool.get(), freed.data(), freed.size()), 0);
    ASSERT_EQ(slabs.size(), stats_of(pool.get()).slabs);
    for (const ibv_mr* slab : slabs) {
        hcamem::core::annotate_live(slab->addr, slab->length); // the wire asks no sanitizer
        std::memset(slab->addr, 0xff, slab->length);
    }

    for (void* block : live) {
        EXPECT_NE(hcamem_usable(pool.get(), block), 0U);
        EXPECT_EQ(hcamem_free(pool.get(), block), 0);
    }
    EXPECT_EQ(stats_of(pool.get()).live_blocks, 0U);
    for (std::size_t size = 64; size <= 2 * MiB; size += size / 3) {
        void* block = hcamem_alloc(pool.get(), size, 0, 0);
        ASSERT_NE(block, nullptr);
        EXPECT_TRUE(domain.covers(block, hcamem_lkey(binding, block)));
        EXPECT_EQ(hcamem_free(pool.get(), block), 0);
    }
    EXPECT_EQ(hcamem_detach(binding), 0);
    hcamem_trim(pool.get(), 0);
    EXPECT_EQ(stats_of(pool.get()).slabs, 0U);
}

} // namespace
