// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// libhcamem-malloc.so on the host, with ordinary memory in place of the device's.
#include <gtest/gtest.h>

#include <string>

#include "run.hpp"

namespace {

class Malloc : public testing::TestWithParam<std::string> {};

TEST_P(Malloc, works_as_the_family_does) {
    const std::string here = preload::build_folder() + "/tests/preload";
    const auto run =
        preload::run({"--strict", "--malloc=4K"}, {here + "/malloc_family", GetParam()},
                     {"HCAMEM_SOURCE=memory", "LD_LIBRARY_PATH=" + here});
    EXPECT_EQ(run.end.status, 0) << run.end.err;
    ASSERT_FALSE(run.reports.empty());
    EXPECT_TRUE(preload::taken(run.reports.back(), "blocks")); // or it was not tested
}

INSTANTIATE_TEST_SUITE_P(Scenes, Malloc,
                         testing::Values("entries", "origin", "mix", "threads", "fork", "clone",
                                         "shared", "loader", "sized"),
                         [](const auto& each) { return each.param; });

TEST(MallocRefusals, what_cannot_be_is_refused_as_glibc_does) {
    const auto run = preload::run(
        {"--malloc=4K"}, {preload::build_folder() + "/tests/preload/malloc_family", "impossible"},
        {"HCAMEM_SOURCE=memory"});
    EXPECT_EQ(run.end.status, 0) << run.end.err;
}

TEST(MallocRefusals, without_the_node_the_program_runs_on_ordinary_memory) {
    const auto run = preload::run(
        {"--malloc=4K"}, {preload::build_folder() + "/tests/preload/malloc_family", "entries"}, {});
    EXPECT_EQ(run.end.status, 0) << run.end.err;
    EXPECT_EQ(run.lines(), 1) << run.end.err;
}

TEST(MallocRefusals, one_request_that_no_pool_could_serve_leaves_it_in_use) {
    const auto run = preload::run(
        {"--malloc=4K"}, {preload::build_folder() + "/tests/preload/malloc_family", "large"},
        {"HCAMEM_SOURCE=memory", "HCAMEM_MAXIMUM=64M"});
    EXPECT_EQ(run.end.status, 0) << run.end.err;
    EXPECT_EQ(run.lines(), 1) << run.end.err;
    EXPECT_NE(run.end.err.find("more than the pool's maximum"), std::string::npos) << run.end.err;
}

TEST(MallocOrdinary, without_the_pool_glibc_grows_and_zeroes_its_blocks) {
    for (const std::string how : {"--none", "--report"}) { // turned off; refused
        const auto run = preload::run(
            {"--malloc=4K", how},
            {preload::build_folder() + "/tests/preload/malloc_family", "ordinary"}, {});
        EXPECT_EQ(run.end.status, 0) << how << run.end.err;
    }
}

TEST(MallocReport, says_how_much_was_in_use_at_once_and_handed_out_in_total) {
    const auto run = preload::run(
        {"--malloc=1M"}, {preload::build_folder() + "/tests/preload/malloc_family", "sequence"},
        {"HCAMEM_SOURCE=memory"});
    ASSERT_EQ(run.end.status, 0) << run.end.err;
    const auto& pools = run.reports.at(0)["pools"].list();
    ASSERT_EQ(pools.size(), 1U);
    EXPECT_EQ(pools[0]["pieces"].unsigned_number(), 10U);
    EXPECT_EQ(pools[0]["bytes"].unsigned_number(), 10U << 20);
    EXPECT_EQ(pools[0]["most_bytes"].unsigned_number(), 1U << 20);
}

// A shell forks children that go on with its memory.
TEST(MallocEnvironment, only_the_program_itself_has_the_library) {
    const std::string run = preload::build_folder() + "/bin/hcamem-run";
    const auto alone = support::run({run, "--malloc", "sh", "-c", "printenv LD_PRELOAD; echo end"});
    EXPECT_EQ(alone.out, "end\n") << alone.err;
    const auto beside =
        support::run({run, "--malloc", "sh", "-c", "printenv LD_PRELOAD"},
                     {.uid = {}, .environment = {"LD_PRELOAD=libm.so.6:libdl.so.2"}});
    EXPECT_EQ(beside.out, "libm.so.6:libdl.so.2\n") << beside.err;
}

TEST(MallocRefusals, a_threshold_that_makes_no_sense_is_ignored_with_a_line) {
    const auto run = preload::run({"--malloc=much"}, {"true"}, {"HCAMEM_SOURCE=memory"});
    EXPECT_EQ(run.end.status, 0);
    EXPECT_NE(run.end.err.find("HCAMEM_MALLOC_THRESHOLD=much is ignored"), std::string::npos)
        << run.end.err;
}

} // namespace
