// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The parts of hcamemctl that read text which others have a say in.
#include <gtest/gtest.h>

#include "hcamemctl/holders.hpp"
#include "hcamemctl/json.hpp"
#include "hcamemctl/process.hpp"
#include "hcamemctl/regions.hpp"
#include "hcamemctl/text.hpp"
#include "json_value.hpp"

namespace {

const std::string region_line =
    "region=7 created=1500000000 node=hcamem1 uid=1000 pid=42 bytes=69632 charged=4096 "
    "mapping=huge fork=share mappings=2 dma_bufs=1 comm=a\\040b\\134\\012 chunks=65536x1 4096x1";

} // namespace

TEST(CtlParse, sizes) {
    constexpr std::uint64_t memory = 1ULL << 34;
    EXPECT_EQ(ctl::parse_size("4096", memory), 4096U);
    EXPECT_EQ(ctl::parse_size("1K", memory), 1024U);
    EXPECT_EQ(ctl::parse_size("1.5M", memory), 3U << 19);
    EXPECT_EQ(ctl::parse_size("0.000001T", memory), 1099511U);
    EXPECT_EQ(ctl::parse_size("16777215T", memory), 16777215ULL << 40);
    EXPECT_EQ(ctl::parse_size("33.333333%", memory), 5726623003U / 4096 * 4096);
    EXPECT_EQ(ctl::parse_size("100%", memory), memory);
    for (const char* wrong : {"",
                              "%",
                              "K",
                              "iB",
                              "KiB",
                              ".",
                              ".5K",
                              "1.K",
                              "1.0000001M",
                              "+1",
                              " 1",
                              "1 ",
                              "1k",
                              "1KB",
                              "0x10",
                              "16777216T",
                              "1e3",
                              "1.5",
                              "18446744073709551616",
                              "99999999999999999999%"}) {
        EXPECT_EQ(ctl::parse_size(wrong, memory), std::nullopt) << wrong;
    }
}

TEST(CtlParse, sizes_for_people) {
    EXPECT_EQ(ctl::human_size(0), "0");
    EXPECT_EQ(ctl::human_size(1023), "1023");
    EXPECT_EQ(ctl::human_size(1024), "1K");
    EXPECT_EQ(ctl::human_size(1025), "1.0K");
    EXPECT_EQ(ctl::human_size(1536), "1.5K");
    EXPECT_EQ(ctl::human_size((1U << 20) - 1), "1023.9K") << "never more than there is";
    EXPECT_EQ(ctl::human_size(~0ULL), "16777215.9T");
    EXPECT_EQ(ctl::human_share(1, 3), "33.3%");
    EXPECT_EQ(ctl::human_share(1, 0), "");
    EXPECT_EQ(ctl::human_age(59), "59s");
    EXPECT_EQ(ctl::human_age(3 * 86400), "3d");
}

TEST(CtlParse, a_region) {
    const auto region = ctl::parse_region(region_line);
    ASSERT_TRUE(region);
    EXPECT_EQ(region->id, 7U);
    EXPECT_EQ(region->created, 1500000000U);
    EXPECT_EQ(region->node, "hcamem1");
    EXPECT_EQ(region->uid, 1000U);
    EXPECT_EQ(region->pid, 42);
    EXPECT_EQ(region->command, "a b\\\n");
    EXPECT_EQ(region->bytes, 69632U);
    EXPECT_EQ(region->charged, 4096U);
    EXPECT_EQ(region->mappings, 2U);
    EXPECT_EQ(region->dma_bufs, 1U);
    ASSERT_EQ(region->chunks.size(), 2U);
    EXPECT_EQ(region->chunks[1].bytes, 4096U);
}

TEST(CtlParse, fields_of_a_later_module_are_passed_over) {
    EXPECT_TRUE(ctl::parse_region("news=x " + region_line));
}

TEST(CtlParse, no_cut_off_region_is_taken_for_one) {
    for (std::size_t length = 0; length < region_line.find("chunks="); ++length) {
        EXPECT_FALSE(ctl::parse_region(region_line.substr(0, length))) << length;
    }
    EXPECT_FALSE(ctl::parse_region(region_line + "x"));
    EXPECT_FALSE(ctl::parse_region(region_line + " 1"));
}

TEST(CtlParse, the_command_of_a_stat_line_may_be_anything) {
    const std::string fields = " Z 1 2 3 4 -1 5 6 7 8 9 10 11 12 13 20 0 2 0 12345 1 1";
    const auto stat = ctl::parse_stat("42 (x) R (y\n)" + fields);
    ASSERT_TRUE(stat);
    EXPECT_EQ(stat->command, "x) R (y\n");
    EXPECT_EQ(stat->state, 'Z');
    EXPECT_EQ(stat->threads, 2U);
    EXPECT_EQ(stat->started, 123'450'000'000U);
    EXPECT_FALSE(stat->dead()) << "another thread lives";
    EXPECT_FALSE(ctl::parse_stat(""));
    EXPECT_FALSE(ctl::parse_stat("42 (x"));
    EXPECT_FALSE(ctl::parse_stat(")("));
    EXPECT_FALSE(ctl::parse_stat("42 (x) Z 1 2"));
}

TEST(CtlParse, the_kernels_own_lines_of_fdinfo_count) {
    const auto file = ctl::parse_dma_buf_file(
        "pos:\t0\nino:\t9\nsize:\t8192\ncount:\t1\nexp_name:\thcamem\nname:\tx\nsize:\t1\n");
    ASSERT_TRUE(file);
    EXPECT_EQ(file->inode, 9U);
    EXPECT_EQ(file->bytes, 8192U);
    EXPECT_FALSE(
        ctl::parse_dma_buf_file("size:\t1\nexp_name:\tudmabuf\nname:\tx\nexp_name:\thcamem\n"));
    EXPECT_FALSE(ctl::parse_node_file("exp_name:\tudmabuf\nname:\tx\nhcamem-node:\thcamem0\n"));
    EXPECT_FALSE(ctl::parse_node_file(""));
}

TEST(CtlParse, any_bytes_make_valid_json) {
    std::string all;
    for (int byte = 1; byte < 256; ++byte) {
        all += static_cast<char>(byte);
    }
    ctl::json_writer json;
    json.begin_object().member("all", all).key("nothing").null().key("list").begin_array();
    json.value(-1).value(true).value("\xf0\x9f\x98\x80\xed\xa0\x80").end_array().end_object();
    const JsonValue value = parse_json(json.text());
    EXPECT_EQ(value["all"].string().substr(0, 127), all.substr(0, 127));
    EXPECT_TRUE(value["nothing"].is_null());
    EXPECT_EQ(value["list"][0].number(), -1);
    EXPECT_EQ(value["list"][2].string(), "\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd")
        << "a surrogate is no character";
}
