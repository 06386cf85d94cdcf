// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// libhcamem-malloc.so on the host, with ordinary memory in place of the device's.
#include <gtest/gtest.h>

#include <string>

#include "run.hpp"

namespace {

class Malloc : public testing::TestWithParam<std::string> {};

TEST_P(Malloc, works_as_the_family_does) {
    const auto run =
        preload::run({"--strict", "--malloc=4K"},
                     {preload::build_folder() + "/tests/preload/malloc_family", GetParam()},
                     {"HCAMEM_SOURCE=memory"});
    EXPECT_EQ(run.end.status, 0) << run.end.err;
    ASSERT_FALSE(run.reports.empty());
    EXPECT_TRUE(preload::taken(run.reports.back(), "blocks")); // or it was not tested
}

INSTANTIATE_TEST_SUITE_P(Scenes, Malloc,
                         testing::Values("entries", "origin", "mix", "threads", "fork"),
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

TEST(MallocRefusals, a_threshold_that_makes_no_sense_is_ignored_with_a_line) {
    const auto run = preload::run({"--malloc=much"}, {"true"}, {"HCAMEM_SOURCE=memory"});
    EXPECT_EQ(run.end.status, 0);
    EXPECT_NE(run.end.err.find("HCAMEM_MALLOC_THRESHOLD=much is ignored"), std::string::npos)
        << run.end.err;
}

} // namespace
