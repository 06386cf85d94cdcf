// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// How pools are registered: by which path, how often, and with which keys.
#include <gtest/gtest.h>

#include <memory>
#include <regex>
#include <set>
#include <vector>

#include "pool_fixture.hpp"
#include "support/child.hpp"

using namespace support;

namespace {

/// Memory regions that the kernel has on an HCA.
unsigned kernel_mrs(const std::string& hca) {
    const std::string file = "/dev/shm/hcamem-resources";
    must_shell("rdma resource show " + hca + " > " + file);
    const std::string text = read_text(file);
    std::smatch found;
    if (!std::regex_search(text, found, std::regex(" mr ([0-9]+)"))) {
        throw std::runtime_error("no count of memory regions in: " + text);
    }
    return static_cast<unsigned>(std::stoul(found[1]));
}

/// Blocks that make the pool grow.
std::vector<hcamem::buffer> grow(const hcamem::pool& pool, std::size_t count) {
    std::vector<hcamem::buffer> blocks;
    for (std::size_t i = 0; i < count; ++i) {
        blocks.emplace_back(pool, 2 * MiB);
    }
    return blocks;
}

} // namespace

TEST(Registration, takes_the_path_that_this_soft_roce_has) {
    const Context context;
    const Pd pd(context);
    hcamem::pool pool = device_pool();
    EXPECT_EQ(pool.source(), HCAMEM_DEVICE);
    const hcamem::binding binding = pool.attach(pd.get());
    const hcamem::buffer buffer = pool.make_buffer(100);
    const hcamem_key key = binding.key(buffer.data());
    EXPECT_EQ(key.path, expected_path());
    EXPECT_NE(key.lkey, 0U);
    EXPECT_EQ(key.access, static_cast<unsigned>(IBV_ACCESS_LOCAL_WRITE));
    EXPECT_EQ(key.lkey, binding.lkey(buffer.data()));
    EXPECT_EQ(key.rkey, binding.rkey(buffer.data()));
}

TEST(Registration, keys_are_those_of_the_slab_and_foreign_pointers_have_none) {
    const Context context;
    const Pd pd(context);
    hcamem::pool pool = device_pool();
    const hcamem::binding binding = pool.attach(pd.get(), remote_access);
    const auto blocks = grow(pool, 4);
    std::set<std::uint32_t> lkeys;
    for (const hcamem::buffer& block : blocks) {
        const std::uint32_t first = binding.lkey(block.data());
        EXPECT_NE(first, 0U);
        EXPECT_EQ(binding.lkey(block.data() + block.size() - 1), first);
        lkeys.insert(first);
    }
    EXPECT_GT(lkeys.size(), 1U);
    EXPECT_EQ(lkeys.size(), pool.stats().slabs);
    int local = 0;
    EXPECT_EQ(binding.lkey(&local), 0U);
    EXPECT_EQ(binding.rkey(&local), 0U);
    EXPECT_EQ(binding.lkey(nullptr), 0U);
}

TEST(Registration, one_memory_region_for_each_slab_and_domain) {
    const Context context;
    const unsigned before = kernel_mrs("rxe0");
    {
        std::vector<Pd> domains;
        for (int i = 0; i < 3; ++i) {
            domains.emplace_back(context);
        }
        hcamem::pool pool = device_pool();
        std::vector<hcamem::binding> bindings;
        for (const Pd& pd : domains) {
            bindings.push_back(pool.attach(pd.get()));
        }
        auto blocks = grow(pool, 5);
        // Many small blocks register nothing more.
        std::vector<hcamem::buffer> small;
        for (int i = 0; i < 500; ++i) {
            small.push_back(pool.make_buffer(1000));
        }
        const hcamem_stats stats = pool.stats();
        EXPECT_GE(stats.slabs, 3U);
        EXPECT_EQ(stats.mrs, stats.slabs * domains.size());
        EXPECT_EQ(kernel_mrs("rxe0") - before, stats.mrs);
        bindings.pop_back();
        EXPECT_EQ(kernel_mrs("rxe0") - before, stats.slabs * 2);
        small.clear();
        blocks.clear();
        pool.trim();
        EXPECT_EQ(kernel_mrs("rxe0"), before) << "trimmed slabs are deregistered";
    }
    EXPECT_EQ(kernel_mrs("rxe0"), before);
}

TEST(Registration, pool_grows_while_attached_and_under_traffic) {
    const Context context;
    const Pd pd(context);
    const Loopback link(context, pd);
    hcamem::pool pool = device_pool();
    const hcamem::binding binding = pool.attach(pd.get(), remote_access);
    const hcamem::buffer source = pool.make_buffer(64 * KiB);
    std::vector<hcamem::buffer> targets;
    for (unsigned i = 0; i < 12; ++i) {
        targets.push_back(pool.make_buffer(MiB));
        fill(bytes_of(source), i);
        ASSERT_EQ(link.write(place(binding, source),
                             place(binding, targets.back().data() + 4096 * i, source.size())),
                  IBV_WC_SUCCESS);
    }
    for (unsigned i = 0; i < targets.size(); ++i) {
        EXPECT_TRUE(holds(bytes_of(targets[i]).subspan(4096 * i, source.size()), i)) << i;
    }
    EXPECT_GT(pool.stats().slabs, 1U);
    // A binding that comes later covers what is there.
    const Pd late(context);
    const hcamem::binding second = pool.attach(late.get());
    for (const hcamem::buffer& target : targets) {
        EXPECT_NE(second.lkey(target.data()), 0U);
    }
}

TEST(Registration, R14_several_domains_and_hcas_on_one_pool) {
    const Context first("rxe0");
    const Context second("rxe1");
    const Pd pd0(first);
    const Pd pd1(first);
    const Pd pd2(second);
    hcamem::pool pool = device_pool();
    hcamem::binding on0 = pool.attach(pd0.get(), remote_access);
    const hcamem::binding on1 = pool.attach(pd1.get(), remote_access);
    const hcamem::binding on2 = pool.attach(pd2.get(), remote_access);
    const hcamem::buffer from = pool.make_buffer(16 * KiB);
    const hcamem::buffer to = pool.make_buffer(16 * KiB);
    const Loopback link0(first, pd0);
    const Loopback link1(first, pd1);
    const Loopback link2(second, pd2);
    fill(bytes_of(from), 1);
    EXPECT_EQ(link0.write(place(on0, from), place(on0, to)), IBV_WC_SUCCESS);
    EXPECT_TRUE(holds(bytes_of(to), 1));
    fill(bytes_of(from), 2);
    EXPECT_EQ(link1.write(place(on1, from), place(on1, to)), IBV_WC_SUCCESS);
    EXPECT_TRUE(holds(bytes_of(to), 2));
    on0.detach();
    fill(bytes_of(from), 3);
    EXPECT_EQ(link2.write(place(on2, from), place(on2, to)), IBV_WC_SUCCESS);
    EXPECT_TRUE(holds(bytes_of(to), 3));
    EXPECT_EQ(on2.key(to.data()).path, expected_path());
}

TEST(Registration, R14_live_blocks_keep_memory_and_keys_after_the_pool_is_closed) {
    const Context context;
    const Pd pd(context);
    const Node node;
    const std::uint64_t before = node.total();
    {
        hcamem_pool* pool = nullptr;
        const hcamem::options options = device_options();
        ASSERT_EQ(hcamem_pool_create(&options, &pool), 0) << hcamem_last_message();
        hcamem_binding* made = nullptr;
        ASSERT_EQ(hcamem_attach(pool, pd.get(), remote_access, &made), 0);
        const hcamem::binding binding(made);
        void* block = hcamem_alloc(pool, 64 * KiB, 0, 0);
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(hcamem_pool_close(pool), -EBUSY);
        const Loopback link(context, pd);
        const std::span<unsigned char> bytes(static_cast<unsigned char*>(block), 64 * KiB);
        fill(bytes.first(page_size), 5);
        EXPECT_EQ(link.write(place(binding, block, page_size),
                             place(binding, bytes.data() + 2 * page_size, page_size)),
                  IBV_WC_SUCCESS);
        EXPECT_TRUE(holds(bytes.subspan(2 * page_size, page_size), 5));
        EXPECT_EQ(hcamem_free(pool, block), 0);
    }
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

TEST(Registration, huge_slabs_where_only_dma_bufs_are_asked_for) {
    const Context context;
    const Pd pd(context);
    hcamem::options options = device_options();
    options.flags |= HCAMEM_OPT_DMABUF_ONLY;
    hcamem::pool pool(options);
    EXPECT_EQ(pool.stats().mapping, static_cast<unsigned>(HCAMEM_MAP_HUGE));
    if (!rxe_imports_dma_bufs()) {
        try {
            const hcamem::binding binding = pool.attach(pd.get());
            ADD_FAILURE() << "registered without a dma-buf";
        } catch (const hcamem::error& error) {
            EXPECT_EQ(error.code().value(), EOPNOTSUPP) << error.what();
        }
        return;
    }
    const hcamem::binding binding = pool.attach(pd.get(), remote_access);
    const hcamem::buffer from = pool.make_buffer(MiB);
    const hcamem::buffer to = pool.make_buffer(MiB);
    EXPECT_EQ(binding.key(from.data()).path, static_cast<unsigned>(HCAMEM_PATH_DMABUF));
    const Loopback link(context, pd);
    fill(bytes_of(from), 1);
    EXPECT_EQ(link.write(place(binding, from), place(binding, to)), IBV_WC_SUCCESS);
    EXPECT_TRUE(holds(bytes_of(to), 1));
}

// gdrcopy#266: EFAULT from ibv_reg_mr() that names no cure.
TEST(Registration, huge_slabs_that_cannot_be_pinned_are_refused_with_the_cure) {
    if (rxe_imports_dma_bufs()) {
        GTEST_SKIP() << "this soft-RoCE needs no pinning";
    }
    const Context context;
    const Pd pd(context);
    hcamem::options options = device_options();
    options.mapping = HCAMEM_MAP_HUGE;
    hcamem::pool pool(options);
    try {
        const hcamem::binding binding = pool.attach(pd.get());
        // 6.1 pins what is mapped already; then it has to say so.
        EXPECT_EQ(kernel(), "6.1");
        const hcamem::buffer buffer = pool.make_buffer(100);
        EXPECT_EQ(binding.key(buffer.data()).path, static_cast<unsigned>(HCAMEM_PATH_USER_PAGES));
    } catch (const hcamem::error& error) {
        EXPECT_EQ(error.code().value(), EFAULT) << error.what();
        EXPECT_NE(std::string(error.what()).find("pages"), std::string::npos) << error.what();
    }
}

// A dma-buf can carry no window; such access goes by ibv_reg_mr(), and the key says so.
TEST(Registration, R14_memory_window_access_goes_by_user_pages) {
    const Context context;
    const Pd pd(context);
    hcamem::options options = device_options();
    options.mapping = HCAMEM_MAP_PAGES;
    hcamem::pool pool(options);
    const hcamem::binding binding =
        pool.attach(pd.get(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    const hcamem::buffer buffer = pool.make_buffer(100);
    const hcamem_key key = binding.key(buffer.data());
    EXPECT_EQ(key.path, static_cast<unsigned>(HCAMEM_PATH_USER_PAGES));
    EXPECT_NE(key.mr, nullptr);
}

TEST(Registration, R15_pools_and_heap_never_share_a_page) {
    hcamem::pool first = device_pool();
    hcamem::pool second = device_pool();
    std::set<std::uintptr_t> pages[3];
    const auto page_of = [](const void* address) {
        return reinterpret_cast<std::uintptr_t>(address) / page_size;
    };
    std::vector<hcamem::buffer> blocks;
    std::vector<std::unique_ptr<char[]>> heap;
    for (int i = 0; i < 300; ++i) {
        blocks.push_back(first.make_buffer(100));
        pages[0].insert(page_of(blocks.back().data()));
        blocks.push_back(second.make_buffer(100));
        pages[1].insert(page_of(blocks.back().data()));
        heap.push_back(std::make_unique<char[]>(100));
        pages[2].insert(page_of(heap.back().get()));
    }
    for (int a = 0; a < 3; ++a) {
        for (int b = a + 1; b < 3; ++b) {
            for (const std::uintptr_t page : pages[a]) {
                EXPECT_FALSE(pages[b].contains(page)) << a << ' ' << b;
            }
        }
    }
}

// ucx#8229, #8684: a memlock limit with a misleading text.
TEST(Registration, R03_a_memlock_refusal_names_limit_bytes_and_remedy) {
    const Identity user{fresh_user(), rlim_t{64 * KiB}, {}};
    EXPECT_TRUE(succeeds_in_child(user, [&](Channel&) {
        hcamem_pool* pool = nullptr;
        const hcamem::options options = device_options();
        require(hcamem_pool_create(&options, &pool) == -EAGAIN, "EAGAIN");
        const std::string message = hcamem_last_message();
        for (const char* part : {"RLIMIT_MEMLOCK", "64 KiB", "2 MiB", "ulimit -l"}) {
            require(message.find(part) != std::string::npos,
                    std::string("no '") + part + "' in: " + message);
        }
    }));
}

TEST(Registration, R03_a_pool_of_six_tenths_of_the_limit_can_be_registered) {
    constexpr rlim_t limit = 20 * MiB;
    EXPECT_TRUE(succeeds_in_child({fresh_user(), limit, {}}, [&](Channel&) {
        const Context context;
        const Pd pd(context);
        hcamem::options options = device_options();
        options.initial = limit / 10 * 6;
        hcamem::pool pool(options);
        const hcamem::binding binding = pool.attach(pd.get());
        const hcamem::buffer buffer = pool.make_buffer(MiB);
        require(binding.lkey(buffer.data()) != 0, "registered");
    }));
}
