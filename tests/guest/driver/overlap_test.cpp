// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Registrations that overlap, nest, or live longer than each other and than the mapping.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

#include "kinds.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"
#include "support/rdma.hpp"

using namespace support;

namespace {

class Overlap : public MappingModes {
  protected:
    void SetUp() override {
        if (GetParam() == HCAMEM_MAPPING_HUGE && !rxe_imports_dma_bufs() && kernel() != "6.1") {
            GTEST_SKIP() << "stock soft-RoCE has no way to register a huge mapping on " << kernel();
        }
        std::memset(region_.data(), 0, region_.size());
        std::memset(source_.data(), 0, source_.size());
        source_mr_ = Mr::of_region(pd_, node_, source_.data(), source_.size());
    }

    Mr registered(std::size_t at, std::size_t length) {
        return Mr::of_region(pd_, node_, region_.data() + at, length);
    }
    /// Whether a write of this many bytes to the region arrives.
    bool arrives(const Mr& mr, std::size_t at, std::size_t length) {
        fill({source_.data(), length}, ++seed_);
        const Place from{source_.data(), length, &source_mr_};
        const Place to{region_.data() + at, length, &mr};
        return link_.write(from, to) == IBV_WC_SUCCESS &&
               holds({region_.data() + at, length}, seed_);
    }

    const Node node_;
    const Context context_;
    const Pd pd_{context_};
    Region region_{node_, huge_size, kind()};
    const Region source_{node_, huge_size, kind()};
    Mr source_mr_;
    const Loopback link_{context_, pd_};
    unsigned seed_ = 0;
};

INSTANTIATE_TEST_SUITE_P(, Overlap, both_mappings, mapping_name);

} // namespace

TEST_P(Overlap, R14_half_pages_of_two_registrations) {
    Mr first = registered(0, 0x1800);
    Mr second = registered(0x1800, 0x1800);
    EXPECT_TRUE(arrives(first, 0x1000, 0x800));
    EXPECT_TRUE(arrives(second, 0x1800, 0x1800));
    first.reset();
    EXPECT_TRUE(arrives(second, 0x1800, 0x800)) << "the page at 0x1000 is the second's too";
    EXPECT_TRUE(arrives(second, 0x2000, 0x1000));
}

TEST_P(Overlap, R14_nested_registrations_end_in_any_order) {
    for (const bool outer_first : {false, true}) {
        Mr outer = registered(0, 8 * page_size);
        Mr inner = registered(2 * page_size + 3, page_size);
        Mr same = registered(0, 8 * page_size);
        EXPECT_TRUE(arrives(outer, 0, 8 * page_size));
        EXPECT_TRUE(arrives(inner, 2 * page_size + 3, page_size));
        (outer_first ? outer : inner).reset();
        EXPECT_TRUE(arrives(outer_first ? inner : outer, 2 * page_size + 3, page_size));
        EXPECT_TRUE(arrives(same, 0, 8 * page_size));
    }
}

TEST_P(Overlap, R14_the_memory_stays_until_the_last_registration_goes) {
    const std::uint64_t before = node_.total();
    auto victim = std::make_unique<Region>(node_, huge_size, kind());
    std::memset(victim->data(), 0, huge_size);
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(victim->data());
    fill(victim->bytes(), 9);
    Mr whole = Mr::of_region(pd_, node_, victim->data(), huge_size);
    Mr part = Mr::of_region(pd_, node_, victim->data() + 5 * page_size, page_size);
    victim.reset();
    EXPECT_GE(node_.total() - before, huge_size);

    // The mapping is gone; the HCA still reaches the bytes.
    const void* gone = reinterpret_cast<const void*>(address);
    const std::size_t quarter = huge_size / 4;
    const Mr here_mr = registered(0, quarter);
    EXPECT_EQ(link_.read({region_.data(), quarter, &here_mr}, {gone, quarter, &whole}),
              IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({region_.data(), quarter}, 9));
    whole.reset();
    const auto* fifth = reinterpret_cast<const void*>(address + 5 * page_size);
    EXPECT_EQ(link_.read({region_.data(), page_size, &here_mr}, {fifth, page_size, &part}),
              IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({region_.data(), page_size}, 9, 5 * page_size));
    EXPECT_GT(node_.total(), before) << "the part is registered still";
    part.reset();
    EXPECT_TRUE(eventually([&] { return node_.total() == before; })) << node_.total() - before;
}

TEST_P(Overlap, R14_two_protection_domains) {
    const Pd other(context_);
    const Mr other_mr = Mr::of_region(other, node_, region_.data(), region_.size());
    Mr own = registered(0, region_.size());
    const Loopback across(context_, pd_, other);
    EXPECT_TRUE(arrives(own, 0, page_size));
    fill({source_.data(), page_size}, 50);
    EXPECT_EQ(across.write({source_.data(), page_size, &source_mr_},
                           {region_.data() + page_size, page_size, &other_mr}),
              IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({region_.data() + page_size, page_size}, 50));
    own.reset();
    fill({source_.data(), page_size}, 51);
    EXPECT_EQ(across.write({source_.data(), page_size, &source_mr_},
                           {region_.data() + page_size, page_size, &other_mr}),
              IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({region_.data() + page_size, page_size}, 51));
}

TEST_P(Overlap, R14_a_key_of_one_domain_is_no_key_in_another) {
    const Pd other(context_);
    const Mr foreign = Mr::of_region(other, node_, region_.data(), page_size);
    EXPECT_EQ(link_.write({source_.data(), page_size, &source_mr_},
                          {region_.data(), page_size, &foreign}),
              IBV_WC_REM_ACCESS_ERR);
}

TEST_P(Overlap, R14_two_hcas_on_one_region) {
    const Context second_context("rxe1");
    const Pd second_pd(second_context);
    const Node second_node("rxe1");
    // Either node exports what either gave out.
    Mr on_first = registered(0, region_.size());
    const Mr on_second = Mr::of_region(second_pd, second_node, region_.data(), region_.size());
    const Loopback second_link(second_context, second_pd);
    EXPECT_TRUE(arrives(on_first, 0, 4 * page_size));
    EXPECT_EQ(second_link.write({region_.data(), 4 * page_size, &on_second},
                                {region_.data() + MiB, 4 * page_size, &on_second}),
              IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({region_.data() + MiB, 4 * page_size}, seed_));
    on_first.reset();
    EXPECT_EQ(second_link.read({region_.data() + 8 * page_size, 4 * page_size, &on_second},
                               {region_.data(), 4 * page_size, &on_second}),
              IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({region_.data() + 8 * page_size, 4 * page_size}, seed_));
}

TEST_P(Overlap, R14_odd_ranges_carry_every_byte) {
    for (const std::size_t at : {std::size_t{1}, page_size - 1, std::size_t{3} * page_size + 77}) {
        for (const std::size_t length : {std::size_t{1}, page_size, 5 * page_size + 13}) {
            const Mr mr = registered(at, length);
            std::memset(region_.data(), 0xaa, 16 * page_size);
            EXPECT_TRUE(arrives(mr, at, length)) << at << ' ' << length;
            EXPECT_TRUE(all_equal({region_.data(), at}, 0xaa));
            EXPECT_TRUE(all_equal({region_.data() + at + length, page_size}, 0xaa));
        }
    }
}

TEST_P(Overlap, R14_beyond_the_registration_is_refused) {
    const Mr mr = registered(page_size, page_size);
    EXPECT_EQ(link_.write({source_.data(), page_size + 1, &source_mr_},
                          {region_.data() + page_size, page_size + 1, &mr}),
              IBV_WC_REM_ACCESS_ERR);
    EXPECT_TRUE(all_equal({region_.data(), 4 * page_size}, 0));
}

TEST_P(Overlap, R14_memory_windows_on_pinned_pages) {
    if (GetParam() == HCAMEM_MAPPING_HUGE) {
        GTEST_SKIP() << "windows are bound to ibv_reg_mr() registrations, which need pages mode";
    }
    const Mr mr =
        Mr::user_pages(pd_, region_.data(), region_.size(),
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
    const std::unique_ptr<ibv_mw, int (*)(ibv_mw*)> window(ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_1),
                                                           ibv_dealloc_mw);
    ASSERT_NE(window, nullptr) << std::strerror(errno);
    ibv_mw_bind bind{};
    bind.send_flags = IBV_SEND_SIGNALED;
    bind.bind_info.mr = mr.verbs();
    bind.bind_info.addr = reinterpret_cast<std::uintptr_t>(region_.data() + 3 * page_size);
    bind.bind_info.length = page_size;
    bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
    ASSERT_EQ(ibv_bind_mw(link_.right(), window.get(), &bind), 0);
    ASSERT_EQ(link_.right_completion().status, IBV_WC_SUCCESS);
    fill({source_.data(), page_size}, 8);
    EXPECT_EQ(link_.write({source_.data(), page_size, &source_mr_},
                          {region_.data() + 3 * page_size, page_size, 0, window->rkey}),
              IBV_WC_SUCCESS);
    EXPECT_TRUE(holds({region_.data() + 3 * page_size, page_size}, 8));
    EXPECT_TRUE(all_equal({region_.data(), 3 * page_size}, 0));
}

TEST_P(Overlap, R15_regions_and_heap_never_share_a_page) {
    // Requests of a few bytes: each has its last page for itself, whole.
    std::vector<Region> regions;
    for (unsigned i = 0; i < 16; ++i) {
        regions.emplace_back(node_, 100 + i, kind());
    }
    auto heap = std::make_unique<unsigned char[]>(8 * page_size);
    std::memset(heap.get(), 0x61, 8 * page_size);
    for (unsigned i = 0; i < regions.size(); ++i) {
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(regions[i].data()) % page_size, 0U);
        ASSERT_EQ(regions[i].size() % page_size, 0U);
        fill(regions[i].bytes(), i);
    }
    for (unsigned i = 0; i < regions.size(); ++i) {
        ASSERT_TRUE(holds(regions[i].bytes(), i)) << "another region wrote into " << i;
        std::memset(regions[i].data(), 0xff, regions[i].size());
    }
    EXPECT_TRUE(all_equal({heap.get(), 8 * page_size}, 0x61));
}

// What an importer can reach through a dma-buf of a few bytes is their page and no more.
TEST_P(Overlap, R15_a_dma_buf_of_a_few_bytes_holds_only_their_pages) {
    std::uint64_t offset = 0;
    const UniqueFd fd = node_.export_range(region_.data() + 3 * page_size + 9, 10, &offset);
    EXPECT_EQ(offset, 9U);
    EXPECT_EQ(lseek(fd.get(), 0, SEEK_END), static_cast<off_t>(page_size));
    fill(region_.bytes(), 1);
    void* mapped = mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    EXPECT_TRUE(holds({static_cast<unsigned char*>(mapped), page_size}, 1, 3 * page_size));
    std::memset(mapped, 0, page_size);
    EXPECT_TRUE(holds({region_.data(), 3 * page_size}, 1));
    EXPECT_TRUE(all_equal({region_.data() + 3 * page_size, page_size}, 0));
    EXPECT_TRUE(holds({region_.data() + 4 * page_size, page_size}, 1, 4 * page_size));
    munmap(mapped, page_size);
}
