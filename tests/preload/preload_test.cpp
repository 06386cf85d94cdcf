// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The preload library on the host: fakes of UCX, libibverbs and libfabric, ordinary memory in
// place of the device's. What the device and the HCA add is shown in the guest, by tests/mpi.
#include <gtest/gtest.h>

#include <string>

#include "run.hpp"

namespace {

using preload::build_folder;
using preload::taken;
using preload::Words;

preload::Run probe(const std::string& scene, const Words& options = {},
                   const Words& environment = {"HCAMEM_SOURCE=memory"}) {
    const std::string here = build_folder() + "/tests/preload";
    return preload::run(options, {here + "/probe", here + "/fakes", scene}, environment);
}

TEST(Preload, takes_the_pools_of_ucx_by_name_and_nothing_else) {
    const auto run = probe("pools", {"--strict"});
    ASSERT_EQ(run.end.status, 0) << run.end.err;
    ASSERT_EQ(run.reports.size(), 1U);
    for (const char* name : {"rc_recv_desc", "rc_send_desc", "rc_verbs_short_desc", "ud_recv_skb",
                             "ud_tx_skb", "tag_eager_send_desc"}) {
        EXPECT_EQ(run.said.at(name), "ours") << name;
        EXPECT_TRUE(taken(run.reports[0], name)) << name;
    }
    for (const char* name : {"mm_recv_desc", "mm_recv_fifo", "user memory"}) {
        EXPECT_EQ(run.said.at(name), "other") << name;
        EXPECT_FALSE(taken(run.reports[0], name)) << name;
    }
    EXPECT_EQ(run.reports[0]["registrations"]["user_pages"].unsigned_number(), 6U);
    EXPECT_EQ(run.reports[0]["registrations"]["other_memory"].unsigned_number(), 3U);
    EXPECT_EQ(run.lines(), 0) << run.end.err;
}

TEST(Preload, none_takes_nothing_and_reports_what_would_be_taken) {
    const auto run = probe("pools", {"--none"});
    ASSERT_EQ(run.end.status, 0) << run.end.err;
    EXPECT_EQ(run.said.at("rc_recv_desc"), "other");
    EXPECT_EQ(run.reports.at(0)["pools"].list().size(), 6U);
    EXPECT_FALSE(taken(run.reports.at(0), "rc_recv_desc"));
}

TEST(Preload, memory_stays_until_its_last_registration_is_gone) {
    const auto run = probe("hold", {"--strict"});
    EXPECT_EQ(run.end.status, 0) << run.end.err;
    EXPECT_EQ(run.said.at("reused"), "1");
    for (const auto& pool : run.reports.at(0)["pools"].list()) {
        EXPECT_LE(pool["most_bytes"].unsigned_number(), 3U << 20); // three times, one by one
    }
}

TEST(Preload, any_access_flag_and_any_part_can_be_registered) {
    const auto run = probe("access", {"--strict"});
    ASSERT_EQ(run.end.status, 0) << run.end.err;
    for (const char* flag : {"access0", "access1", "access2", "access3", "access4", "access5",
                             "access6", "access20"}) {
        EXPECT_EQ(run.said.at(flag), "kept") << flag;
    }
    EXPECT_EQ(run.said.at("access7"), "dropped"); // the memory's pages, which are not huge
    // Windows, zero-based, on demand, and an iova of its own.
    EXPECT_EQ(run.reports.at(0)["registrations"]["passed_through"].unsigned_number(), 4U);
}

TEST(Preload, child_has_zeros_and_memory_of_its_own) {
    const auto run = probe("fork", {"--strict"});
    EXPECT_EQ(run.end.status, 0) << run.end.err;
    EXPECT_EQ(run.said.at("child"), "ours");
    ASSERT_EQ(run.reports.size(), 2U); // the child's does not hold its parent's counts
    EXPECT_EQ(run.reports[0]["registrations"]["user_pages"].unsigned_number(), 0U);
    EXPECT_EQ(run.reports[1]["registrations"]["user_pages"].unsigned_number(), 1U);
}

// Not strict: a child that is forked while libhcamem is being loaded has ordinary memory.
TEST(Preload, threads_and_forks_meanwhile) {
    const auto run = probe("threads");
    EXPECT_EQ(run.end.status, 0) << run.end.err;
}

TEST(Preload, ucx_whose_calls_are_bound_within_it_is_told) {
    const std::string here = build_folder() + "/tests/preload";
    const auto run =
        preload::run({}, {here + "/probe", here + "/symbolic", "pools"}, {"HCAMEM_SOURCE=memory"});
    ASSERT_EQ(run.end.status, 0) << run.end.err;
    EXPECT_EQ(run.said.at("rc_recv_desc"), "other");
    EXPECT_EQ(run.reports.at(0)["out_of_reach"].unsigned_number(), 1U);
}

TEST(Preload, libfabric_is_reached_once_it_uses_verbs_and_only_for_large_pieces) {
    const auto run = probe("fabric", {"--strict"});
    ASSERT_EQ(run.end.status, 0) << run.end.err;
    const auto& pools = run.reports.at(0)["pools"].list();
    ASSERT_EQ(pools.size(), 1U);
    EXPECT_EQ(pools[0]["owner"].string(), "libfabric");
    EXPECT_EQ(pools[0]["pieces"].unsigned_number(), 1U);
    EXPECT_EQ(pools[0]["bytes"].unsigned_number(), 4U << 20);
}

TEST(Preload, exit_handlers_of_others_may_come_before_or_after_ours) {
    const std::string here = build_folder() + "/tests/preload";
    const auto end = support::run(
        {build_folder() + "/bin/hcamem-run", "--strict", "--report", here + "/probe",
         here + "/fakes", "exit"},
        {.uid = {}, .environment = {"HCAMEM_SOURCE=memory", "LD_PRELOAD=" + here + "/liblate.so"}});
    EXPECT_EQ(end.status, 0) << end.err;
    const auto before = end.err.find("exit handler\n");
    const auto ours = end.err.find("hcamem: report of process");
    const auto after = end.err.find("late destructor\n");
    ASSERT_NE(after, std::string::npos) << end.err;
    EXPECT_LT(before, ours) << end.err;
    EXPECT_LT(ours, after) << end.err;
}

TEST(Preload, report_does_not_go_to_a_file_that_got_the_number_of_its_descriptor) {
    const std::string here = build_folder() + "/tests/preload";
    const auto end = support::run(
        {build_folder() + "/bin/hcamem-run", "--report", here + "/probe", here + "/fakes", "reuse"},
        {.uid = {}, .environment = {"HCAMEM_SOURCE=memory", "LD_PRELOAD=" + here + "/liblate.so"}});
    EXPECT_EQ(end.status, 0) << end.err;
    EXPECT_NE(end.err.find("hcamem: report of process"), std::string::npos) << end.err;
    EXPECT_NE(end.err.find("late look: nothing was written\n"), std::string::npos) << end.err;
}

TEST(Preload, libfabric_whose_table_can_be_changed_by_half_is_left_alone) {
    const std::string library = build_folder() + "/tests/preload/librefuse_mprotect.so";
    for (const std::string which : {"1", "2"}) { // of the two entries
        const auto run =
            probe("fabric", {"--strict"},
                  {"HCAMEM_SOURCE=memory", "LD_PRELOAD=" + library, "REFUSE_MPROTECT=" + which});
        EXPECT_EQ(run.end.status, 0) << run.end.err;
        EXPECT_NE(run.end.err.find("mprotect: refused"), std::string::npos) << run.end.err;
        EXPECT_NE(run.end.err.find("its calls cannot be changed"), std::string::npos)
            << run.end.err;
        EXPECT_TRUE(run.reports.at(0)["pools"].list().empty()) << which;
    }
}

TEST(Preload, children_find_zeros_whatever_hcamem_fork_says) {
    const auto run = probe("fork", {"--strict"}, {"HCAMEM_SOURCE=memory", "HCAMEM_FORK=share"});
    EXPECT_EQ(run.end.status, 0) << run.end.err;
    EXPECT_EQ(run.said.at("child"), "ours");
    EXPECT_EQ(run.lines(), 1) << run.end.err;
    EXPECT_NE(run.end.err.find("HCAMEM_FORK=share is ignored"), std::string::npos) << run.end.err;
}

/// The pool's addresses must be fewer than valgrind has.
class UnderValgrind : public testing::TestWithParam<std::string> {};

TEST_P(UnderValgrind, touches_nothing_that_it_gave_back) {
    const std::string here = build_folder() + "/tests/preload";
    const auto run = preload::run({"--strict"},
                                  {"valgrind", "-q", "--error-exitcode=9",
                                   "--suppressions=" + here + "/valgrind.supp", here + "/probe",
                                   here + "/fakes", GetParam()},
                                  {"HCAMEM_SOURCE=memory", "HCAMEM_MAXIMUM=512M"});
    EXPECT_EQ(run.end.status, 0) << run.end.err;
}

INSTANTIATE_TEST_SUITE_P(Scenes, UnderValgrind,
                         testing::Values("pools", "hold", "access", "fork", "fabric", "exit"),
                         [](const auto& each) { return each.param; });

TEST(Preload, without_the_node_a_line_says_so_and_ordinary_memory_is_used) {
    const auto run = probe("refusals", {}, {});
    EXPECT_EQ(run.end.status, 0) << run.end.err;
    EXPECT_EQ(run.said.at("grow0"), "other");
    EXPECT_EQ(run.said.at("grow2"), "other");
    EXPECT_EQ(run.lines(), 1) << run.end.err;
    EXPECT_NE(run.end.err.find("ordinary memory is used"), std::string::npos) << run.end.err;
    EXPECT_NE(run.reports.at(0)["fall_back"].string(), "");
}

TEST(Preload, strict_makes_that_an_error) {
    const auto run = probe("refusals", {"--strict"}, {});
    EXPECT_EQ(run.said.at("grow0"), "failed");
    EXPECT_EQ(run.said.at("grow2"), "failed");
    EXPECT_EQ(run.lines(), 1) << run.end.err;
}

// UCX would ask again for ever.
TEST(Preload, after_a_refused_registration_ordinary_memory_is_used) {
    const auto run = probe("refusals", {}, {"HCAMEM_SOURCE=memory", "FAKE_REG_FAIL=12"});
    EXPECT_EQ(run.end.status, 0) << run.end.err;
    EXPECT_EQ(run.said.at("grow0"), "failed");
    EXPECT_EQ(run.said.at("grow1"), "other");
    EXPECT_EQ(run.said.at("grow2"), "other");
    EXPECT_EQ(run.lines(), 1) << run.end.err;
    EXPECT_NE(run.end.err.find("ibv_reg_mr"), std::string::npos) << run.end.err;
}

TEST(Preload, limit_of_the_pool_is_named) {
    const auto run = probe("pools", {}, {"HCAMEM_SOURCE=memory", "HCAMEM_MAXIMUM=4M"});
    EXPECT_EQ(run.end.status, 0) << run.end.err;
    EXPECT_EQ(run.said.at("rc_recv_desc"), "ours");
    EXPECT_EQ(run.said.at("tag_eager_send_desc"), "other");
    EXPECT_EQ(run.lines(), 1) << run.end.err;
    EXPECT_NE(run.end.err.find("HCAMEM_MAXIMUM"), std::string::npos) << run.end.err;
}

TEST(Preload, report_for_people_is_on_standard_error) {
    const auto end = support::run({build_folder() + "/bin/hcamem-run", "--report", "true"});
    EXPECT_EQ(end.status, 0);
    EXPECT_EQ(end.out, "");
    EXPECT_NE(end.err.find("no memory was asked for"), std::string::npos) << end.err;
}

TEST(Preload, report_that_cannot_be_written_is_said) {
    const auto end =
        support::run({build_folder() + "/bin/hcamem-run", "--report=/nowhere/report", "true"});
    EXPECT_EQ(end.status, 0);
    EXPECT_NE(end.err.find("/nowhere/report: No such file"), std::string::npos) << end.err;
}

TEST(HcamemRun, says_what_is_wrong_with_the_command_line) {
    const std::string run = build_folder() + "/bin/hcamem-run";
    EXPECT_EQ(support::run({run}).status, 2);
    EXPECT_EQ(support::run({run, "--nonsense", "true"}).status, 2);
    EXPECT_EQ(support::run({run, "/"}).status, 126);
    EXPECT_EQ(support::run({run, "no-such-program-here"}).status, 127);
    EXPECT_EQ(support::run({run, "--help"}).status, 0);
    EXPECT_EQ(support::run({run, "--", "sh", "-c", "exit 5"}).status, 5);
}

TEST(HcamemRun, keeps_what_is_preloaded_already) {
    support::ProcessOptions how;
    how.environment = {"LD_PRELOAD=libm.so.6"};
    const auto end =
        support::run({build_folder() + "/bin/hcamem-run", "printenv", "LD_PRELOAD"}, how);
    EXPECT_NE(end.out.find("libhcamem-preload.so:libm.so.6\n"), std::string::npos) << end.out;
}

} // namespace
