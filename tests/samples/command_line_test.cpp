// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <gtest/gtest.h>

#include "sample.hpp"

namespace {

using sample::failed_with;
using sample::run;

class HostCommandLine : public testing::TestWithParam<const char*> {};

TEST_P(HostCommandLine, help_goes_to_stdout_and_lists_options_and_exit_codes) {
    for (const char* help : {"--help", "-h"}) {
        const auto end = run(GetParam(), {help});
        EXPECT_TRUE(sample::succeeded(end));
        EXPECT_TRUE(end.out.starts_with(std::string("Usage: ") + GetParam()));
        for (const char* text : {"--ib-dev", "--gid-idx", "--json", "--timeout", "Exit codes:"}) {
            EXPECT_NE(end.out.find(text), std::string::npos) << text;
        }
    }
}

TEST_P(HostCommandLine, an_unknown_option_is_named) {
    EXPECT_TRUE(failed_with(sample::usage, "-z: no such option", run(GetParam(), {"-z"})));
    EXPECT_TRUE(
        failed_with(sample::usage, "--bogus: no such option", run(GetParam(), {"--bogus"})));
}

TEST_P(HostCommandLine, a_missing_or_superfluous_value_is_named) {
    EXPECT_TRUE(failed_with(sample::usage, "-d: needs a value", run(GetParam(), {"-d"})));
    EXPECT_TRUE(
        failed_with(sample::usage, "--gid-idx: needs a value", run(GetParam(), {"--gid-idx"})));
    EXPECT_TRUE(failed_with(sample::usage, "takes no value", run(GetParam(), {"--events=yes"})));
}

TEST_P(HostCommandLine, too_many_arguments_are_refused) {
    EXPECT_TRUE(failed_with(sample::usage, "unexpected argument", run(GetParam(), {"a", "b"})));
}

TEST_P(HostCommandLine, a_number_must_be_one_and_in_its_range) {
    for (const char* text : {"", "x", "1x", " 1", "-1", "+1", "1.5", "0x", "0",
                             "99999999999999999999", "18446744073709551617"}) {
        EXPECT_TRUE(
            failed_with(sample::usage, "must be a whole number", run(GetParam(), {"-n", text})))
            << "'" << text << "'";
    }
    EXPECT_TRUE(failed_with(sample::usage, "--gid-idx 256", run(GetParam(), {"-g", "256"})));
    EXPECT_TRUE(failed_with(sample::usage, "--ib-port 0", run(GetParam(), {"-i", "0"})));
    EXPECT_TRUE(failed_with(sample::usage, "--sl 16", run(GetParam(), {"-l", "16"})));
    EXPECT_TRUE(failed_with(sample::usage, "--timeout 0", run(GetParam(), {"--timeout", "0"})));
}

TEST_P(HostCommandLine, the_mtu_is_one_of_five) {
    EXPECT_TRUE(failed_with(sample::usage, "--mtu 1000", run(GetParam(), {"-m", "1000"})));
    EXPECT_TRUE(failed_with(sample::usage, "--mtu 8192", run(GetParam(), {"-m", "8192"})));
}

TEST_P(HostCommandLine, an_hca_that_does_not_exist_ends_with_its_code) {
    // "HCA" if the machine has RDMA loaded, "RDMA" if not.
    EXPECT_TRUE(failed_with(sample::hca, "", run(GetParam(), {"-d", "no_such_hca"})));
}

TEST_P(HostCommandLine, a_result_file_that_cannot_be_written_is_refused_before_the_run) {
    EXPECT_TRUE(failed_with(sample::usage, "/no/such/dir/x",
                            run(GetParam(), {"--json", "/no/such/dir/x"})));
}

INSTANTIATE_TEST_SUITE_P(Samples, HostCommandLine,
                         testing::Values(sample::pingpong, sample::rdma, sample::eager_pool,
                                         sample::containers),
                         [](const auto& info) { return std::string(info.param); });

class HostPeerCommandLine : public testing::TestWithParam<const char*> {};

TEST_P(HostPeerCommandLine, sizes_and_ports_have_ranges) {
    EXPECT_TRUE(failed_with(sample::usage, "--size 0", run(GetParam(), {"-s", "0"})));
    EXPECT_TRUE(failed_with(sample::usage, "--size 1t", run(GetParam(), {"-s", "1t"})));
    EXPECT_TRUE(failed_with(sample::usage, "--size k", run(GetParam(), {"-s", "k"})));
    EXPECT_TRUE(
        failed_with(sample::usage, "--size 99999999999g", run(GetParam(), {"-s", "99999999999g"})));
    EXPECT_TRUE(failed_with(sample::usage, "--port 65536", run(GetParam(), {"-p", "65536"})));
    EXPECT_TRUE(failed_with(sample::usage, "--port 0", run(GetParam(), {"-p", "0"})));
    EXPECT_TRUE(failed_with(sample::usage, "--wait 0", run(GetParam(), {"--wait", "0"})));
}

TEST_P(HostPeerCommandLine, the_kind_of_memory_is_one_of_three) {
    EXPECT_TRUE(failed_with(sample::usage, "must be pool, malloc or hugetlb",
                            run(GetParam(), {"--memory", "shared"})));
}

INSTANTIATE_TEST_SUITE_P(Samples, HostPeerCommandLine,
                         testing::Values(sample::pingpong, sample::rdma, sample::eager_pool),
                         [](const auto& info) { return std::string(info.param); });

TEST(HostPingpongCommandLine, the_pingpong_has_the_letters_of_the_known_tool) {
    // Each is taken, and the last one is what is complained about.
    const auto end = run(sample::pingpong,
                         {"-p", "18515", "-d", "no_such_hca", "-i", "1", "-s", "64", "-m", "1024",
                          "-r", "500",   "-n", "10",          "-l", "0", "-e", "-g", "1",  "-c"});
    EXPECT_TRUE(failed_with(sample::hca, "", end));
    const auto long_names =
        run(sample::pingpong,
            {"--port=18515", "--ib-dev=no_such_hca", "--ib-port=1", "--size=64", "--mtu=1024",
             "--rx-depth=500", "--iters=10", "--sl=0", "--events", "--gid-idx=1", "--chk"});
    EXPECT_TRUE(failed_with(sample::hca, "", long_names));
}

TEST(HostRdmaCommandLine, self_takes_no_host) {
    EXPECT_TRUE(failed_with(sample::usage, "--self", run(sample::rdma, {"--self", "host"})));
}

} // namespace
