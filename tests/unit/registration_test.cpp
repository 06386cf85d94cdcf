// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Bindings and keys, with a fake HCA: every slab is registered before its first block
// is handed out, and what fails is undone.
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/fake_registrar.hpp"
#include "support/mapped.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

hcamem_binding* must_attach(hcamem_pool* pool, fake_domain& domain) {
    hcamem_binding* binding = nullptr;
    if (attach(pool, domain, &binding) != 0) {
        throw std::runtime_error(hcamem_last_message());
    }
    return binding;
}

TEST(Registration, attach_registers_the_slabs_there_are_and_growth_those_that_come) {
    const pool_ptr pool = make_pool();
    void* before = hcamem_alloc(pool.get(), MiB, 0, 0);
    fake_domain domain;
    hcamem_binding* binding = must_attach(pool.get(), domain);
    EXPECT_EQ(domain.registered(), 1U);
    EXPECT_TRUE(domain.covers(before, hcamem_lkey(binding, before)));
    void* after = hcamem_alloc(pool.get(), 8 * MiB, 0, 0);
    ASSERT_NE(after, nullptr);
    EXPECT_EQ(domain.registered(), 2U);
    for (std::size_t offset = 0; offset < 8 * MiB; offset += 4 * KiB) {
        const char* address = static_cast<char*>(after) + offset;
        ASSERT_TRUE(domain.covers(address, hcamem_lkey(binding, address)));
        ASSERT_EQ(hcamem_rkey(binding, address), hcamem_lkey(binding, address) + 0x100000);
    }
    EXPECT_EQ(hcamem_detach(binding), 0);
    EXPECT_EQ(domain.registered(), 0U);
}

TEST(Registration, keys_of_foreign_addresses_are_zero) {
    const pool_ptr pool = make_pool();
    fake_domain domain;
    hcamem_binding* binding = must_attach(pool.get(), domain);
    void* block = hcamem_alloc(pool.get(), 64, 0, 0);
    const int on_stack = 0;
    for (const void* foreign :
         {static_cast<const void*>(&on_stack), static_cast<const void*>(nullptr),
          static_cast<const void*>(static_cast<char*>(block) - 2 * MiB),
          static_cast<const void*>(static_cast<char*>(block) + 32 * MiB),
          reinterpret_cast<const void*>(UINTPTR_MAX)}) {
        EXPECT_EQ(hcamem_lkey(binding, foreign), 0U);
        EXPECT_EQ(hcamem_rkey(binding, foreign), 0U);
        hcamem_key key{1, 1, 1, 1, nullptr};
        EXPECT_EQ(hcamem_key_of(binding, foreign, &key), -EFAULT);
        EXPECT_EQ(key.lkey, 0U);
        EXPECT_EQ(key.path, static_cast<std::uint32_t>(HCAMEM_PATH_NONE));
    }
    hcamem_detach(binding);
}

TEST(Registration, the_key_tells_path_access_and_memory_region) {
    const pool_ptr pool = make_pool();
    fake_domain domain;
    hcamem_binding* binding = must_attach(pool.get(), domain);
    auto* block = static_cast<char*>(hcamem_alloc(pool.get(), 5 * MiB, 0, 0));
    hcamem_key key{};
    ASSERT_EQ(hcamem_key_of(binding, block + 5 * MiB - 1, &key), 0);
    EXPECT_EQ(key.lkey, hcamem_lkey(binding, block));
    EXPECT_EQ(key.rkey, hcamem_rkey(binding, block));
    EXPECT_EQ(key.path, static_cast<std::uint32_t>(HCAMEM_PATH_DMABUF));
    EXPECT_EQ(key.access, static_cast<std::uint32_t>(IBV_ACCESS_LOCAL_WRITE));
    ASSERT_NE(key.mr, nullptr);
    EXPECT_LE(static_cast<char*>(key.mr->addr), block);
    EXPECT_EQ(key.mr->lkey, key.lkey);
    hcamem_detach(binding);
}

TEST(Registration, memory_regions_are_slabs_times_bindings) {
    const pool_ptr pool = make_pool();
    std::array<fake_domain, 3> domains;
    std::array<hcamem_binding*, 3> bindings{};
    for (std::size_t index = 0; index < domains.size(); ++index) {
        bindings[index] = must_attach(pool.get(), domains[index]);
    }
    std::vector<void*> blocks(5);
    for (void*& block : blocks) {
        block = hcamem_alloc(pool.get(), 3 * MiB, 0, 0);
        ASSERT_NE(block, nullptr);
    }
    const hcamem_stats stats = stats_of(pool.get());
    EXPECT_EQ(stats.bindings, 3U);
    EXPECT_EQ(stats.mrs, stats.slabs * 3);
    for (std::size_t index = 0; index < domains.size(); ++index) {
        EXPECT_EQ(domains[index].registered(), stats.slabs);
        EXPECT_EQ(domains[index].registered_bytes(), stats.slab_bytes);
        for (const void* block : blocks) {
            EXPECT_TRUE(domains[index].covers(block, hcamem_lkey(bindings[index], block)));
        }
    }
    EXPECT_EQ(hcamem_detach(bindings[1]), 0);
    EXPECT_EQ(domains[1].registered(), 0U);
    EXPECT_TRUE(domains[2].covers(blocks[0], hcamem_lkey(bindings[2], blocks[0])));
    EXPECT_EQ(hcamem_detach(bindings[0]), 0);
    EXPECT_EQ(hcamem_detach(bindings[2]), 0);
}

TEST(Registration, failed_growth_leaves_nothing_behind_and_reports_the_cause) {
    for (std::size_t failing = 0; failing < 3; ++failing) {
        const pool_ptr pool = make_pool();
        std::array<fake_domain, 3> domains;
        std::array<hcamem_binding*, 3> bindings{};
        for (std::size_t index = 0; index < domains.size(); ++index) {
            bindings[index] = must_attach(pool.get(), domains[index]);
        }
        void* first = hcamem_alloc(pool.get(), 2 * MiB, 0, 0);
        ASSERT_NE(first, nullptr);
        const std::size_t mappings = mapping_count(first, 64 * MiB);
        domains[failing].fail_registration(1, EIO);
        EXPECT_EQ(hcamem_alloc(pool.get(), 2 * MiB, 0, 0), nullptr);
        EXPECT_EQ(errno, EIO);
        EXPECT_NE(std::strstr(hcamem_last_message(), "fake HCA refuses"), nullptr);
        for (const fake_domain& domain : domains) {
            EXPECT_EQ(domain.registered(), 1U);
        }
        const hcamem_stats stats = stats_of(pool.get());
        EXPECT_EQ(stats.slabs, 1U);
        EXPECT_EQ(stats.mrs, 3U);
        EXPECT_EQ(mapping_count(first, 64 * MiB), mappings);
        void* second = hcamem_alloc(pool.get(), 2 * MiB, 0, 0);
        ASSERT_NE(second, nullptr) << "the next growth works";
        for (std::size_t index = 0; index < domains.size(); ++index) {
            EXPECT_TRUE(domains[index].covers(second, hcamem_lkey(bindings[index], second)));
            EXPECT_EQ(hcamem_detach(bindings[index]), 0);
        }
    }
}

TEST(Registration, failed_attach_leaves_nothing_registered) {
    const pool_ptr pool = make_pool();
    for (int count = 0; count < 4; ++count) {
        ASSERT_NE(hcamem_alloc(pool.get(), 3 * MiB, 0, 0), nullptr);
    }
    const std::size_t slabs = stats_of(pool.get()).slabs;
    ASSERT_GE(slabs, 3U);
    for (std::size_t failing = 1; failing <= slabs; ++failing) {
        fake_domain domain;
        domain.fail_registration(failing, ENOMEM);
        hcamem_binding* binding = nullptr;
        EXPECT_EQ(attach(pool.get(), domain, &binding), -ENOMEM);
        EXPECT_EQ(binding, nullptr);
        EXPECT_EQ(domain.registered(), 0U);
        EXPECT_EQ(stats_of(pool.get()).bindings, 0U);
    }
}

TEST(Registration, where_a_large_slab_cannot_be_registered_a_smaller_one_is_tried) {
    hcamem_options options = test_options();
    options.growth = 16 * MiB;
    const pool_ptr pool = make_pool(options);
    fake_domain domain;
    hcamem_binding* binding = must_attach(pool.get(), domain);
    domain.fail_registration(1, ENOMEM);
    void* block = hcamem_alloc(pool.get(), 64, 0, 0);
    ASSERT_NE(block, nullptr) << hcamem_last_message();
    EXPECT_EQ(stats_of(pool.get()).slab_bytes, 8 * MiB);
    EXPECT_EQ(domain.registered_bytes(), 8 * MiB);
    hcamem_detach(binding);
}

TEST(Registration, bindings_come_and_go_while_threads_allocate) {
    hcamem_options options = test_options();
    const pool_ptr pool = make_pool(options);
    fake_domain lasting_domain;
    hcamem_binding* lasting = must_attach(pool.get(), lasting_domain);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (std::size_t index = 0; index < 2; ++index) {
        threads.emplace_back([&, index] {
            while (!stop) {
                const std::size_t size = index == 0 ? 3000 : 1500 * KiB;
                void* block = hcamem_alloc(pool.get(), size, 0, 0);
                ASSERT_NE(block, nullptr) << hcamem_last_message();
                ASSERT_TRUE(lasting_domain.covers(block, hcamem_lkey(lasting, block)));
                ASSERT_EQ(hcamem_free(pool.get(), block), 0);
                if (index == 1) {
                    hcamem_trim(pool.get(), 0);
                }
            }
        });
    }
    for (int count = 0; count < 100; ++count) {
        fake_domain domain;
        hcamem_binding* binding = must_attach(pool.get(), domain);
        void* block = hcamem_alloc(pool.get(), 100 * KiB, 0, 0);
        ASSERT_NE(block, nullptr);
        ASSERT_TRUE(domain.covers(block, hcamem_lkey(binding, block)));
        ASSERT_EQ(hcamem_free(pool.get(), block), 0);
        ASSERT_EQ(hcamem_detach(binding), 0);
        ASSERT_EQ(domain.registered(), 0U);
    }
    stop = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(hcamem_detach(lasting), 0);
}

TEST(Registration, access_that_the_verbs_rules_forbid_is_refused_before_any_call) {
    const pool_ptr pool = make_pool();
    ibv_device device{};
    ibv_context context{};
    context.device = &device;
    ibv_pd pd{};
    pd.context = &context;
    hcamem_binding* binding = nullptr;
    for (const int access :
         {static_cast<int>(IBV_ACCESS_REMOTE_WRITE), static_cast<int>(IBV_ACCESS_REMOTE_ATOMIC),
          static_cast<int>(IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE)}) {
        EXPECT_EQ(hcamem_attach(pool.get(), &pd, access, &binding), -EINVAL);
        EXPECT_NE(std::string(hcamem_last_message()).find("access 0x"), std::string::npos);
    }
}

} // namespace
