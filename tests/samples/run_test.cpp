// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Runs that succeed: every sample over every kind of memory, and the options.
#include <gtest/gtest.h>

#include <fstream>

#include "sample.hpp"
#include "support/guest.hpp"

namespace {

using sample::Words;
using support::Json;

/// Huge pages in the kernel's reserve, given back at the end.
class HugePages {
  public:
    HugePages() { support::write_text(file, "16"); }
    HugePages(const HugePages&) = delete;
    HugePages& operator=(const HugePages&) = delete;
    ~HugePages() { std::ofstream(file) << "0"; }

  private:
    static constexpr const char* file = "/proc/sys/vm/nr_hugepages";
};

std::string registration_of(const std::string& memory) {
    return memory == "pool" ? sample::pool_registration() : "user_pages";
}

/// Runs a pair to its end; both must succeed without an error in the data. The client's result.
Json run_pair(const std::string& name, const Words& options) {
    const std::string client_json = sample::fresh_json();
    const std::string server_json = sample::fresh_json();
    sample::Pair pair =
        sample::start_pair(name, options, {"--json", server_json}, {"--json", client_json});
    EXPECT_TRUE(sample::succeeded(pair.client.finish()));
    EXPECT_TRUE(sample::succeeded(pair.server.finish()));
    EXPECT_EQ(Json::read_file(server_json)["data_errors"].unsigned_number(), 0U);
    Json result = Json::read_file(client_json);
    EXPECT_EQ(result["data_errors"].unsigned_number(), 0U);
    return result;
}

class Memory : public testing::TestWithParam<const char*> {
    HugePages huge_pages_;
};

TEST_P(Memory, pingpong_moves_every_byte_right_and_says_how_it_was_registered) {
    const Json result =
        run_pair(sample::pingpong, {"-c", "-n", "50", "-s", "8191", "--memory", GetParam()});
    EXPECT_EQ(result["hca"].string(), "rxe0");
    EXPECT_EQ(result["memory"].string(), GetParam());
    EXPECT_EQ(result["registration"].string(), registration_of(GetParam()));
    EXPECT_EQ(result["bytes"].unsigned_number(), 8191U);
    EXPECT_EQ(result["iterations"].unsigned_number(), 50U);
    EXPECT_EQ(result["checked_bytes"].unsigned_number(), 50U * 8191U);
    EXPECT_GT(result["usec_per_iteration"].number(), 0.0);
    EXPECT_FALSE(result["address_ranges"].list().empty());
}

TEST_P(Memory, rdma_writes_reads_and_atomics_are_right) {
    const Json result = run_pair(sample::rdma, {"-n", "10", "--memory", GetParam()});
    EXPECT_EQ(result["memory"].string(), GetParam());
    EXPECT_EQ(result["registration"].string(), registration_of(GetParam()));
}

// With these libibverbs looks through the process's mappings at each registration by address.
TEST(Rdma, works_where_libibverbs_is_told_to_care_for_forks_and_huge_pages) {
    support::ProcessOptions how;
    how.environment = {"RDMAV_FORK_SAFE=1", "RDMAV_HUGEPAGES_SAFE=1"};
    EXPECT_TRUE(sample::succeeded(
        sample::run(sample::rdma, {"--self", "-d", "rxe0", "-n", "5", "--memory", "pool"}, how)));
}

TEST_P(Memory, rdma_with_itself_needs_one_command) {
    const auto end = sample::run(
        sample::rdma, {"--self", "-d", "rxe0", "-n", "5", "-s", "1001", "--memory", GetParam()});
    EXPECT_TRUE(sample::succeeded(end));
    for (const char* operation : {"write", "read", "fetch-and-add", "compare-and-swap"}) {
        EXPECT_NE(end.out.find(operation), std::string::npos) << operation;
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Memory, testing::Values("pool", "malloc", "hugetlb"),
                         [](const auto& info) { return std::string(info.param); });

struct Variant {
    const char* name;
    Words options;
};

class PingpongOptions : public testing::TestWithParam<Variant> {};

TEST_P(PingpongOptions, run_to_the_end_with_the_data_right) {
    Words options{"-c", "-n", "20"};
    options.insert(options.end(), GetParam().options.begin(), GetParam().options.end());
    run_pair(sample::pingpong, options);
}

INSTANTIATE_TEST_SUITE_P(
    Options, PingpongOptions,
    testing::Values(Variant{"events", {"-e"}}, Variant{"gid_index", {"-g", "1"}},
                    Variant{"ib_port", {"-i", "1"}}, Variant{"mtu_256", {"-m", "256"}},
                    Variant{"one_receive", {"-r", "1"}},
                    Variant{"one_receive_asleep", {"-r", "1", "-e"}},
                    Variant{"more_receives_than_messages", {"-r", "1000"}},
                    Variant{"service_level", {"-l", "3"}}, Variant{"one_byte", {"-s", "1"}},
                    Variant{"odd_size", {"-s", "65537"}}, Variant{"size_with_unit", {"-s", "128k"}},
                    Variant{"one_message", {"-n", "1"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Pingpong, sides_may_use_different_memory_and_waiting) {
    sample::Pair pair = sample::start_pair(sample::pingpong, {"-c", "-n", "20"},
                                           {"--memory", "malloc", "-e"}, {"--memory", "pool"});
    EXPECT_TRUE(sample::succeeded(pair.client.finish()));
    EXPECT_TRUE(sample::succeeded(pair.server.finish()));
}

TEST(Pingpong, first_hca_is_taken_if_none_is_named) {
    const std::string port = sample::fresh_port();
    support::Process server(sample::command(sample::pingpong, {"-n", "5", "-p", port}));
    ASSERT_TRUE(sample::listens(port));
    EXPECT_TRUE(
        sample::succeeded(sample::run(sample::pingpong, {"-n", "5", "-p", port, "localhost"})));
    EXPECT_TRUE(sample::succeeded(server.finish()));
}

TEST(Pingpong, second_hca_has_a_node_of_its_own) {
    const std::string port = sample::fresh_port();
    const Words words{"-d", "rxe1", "-c", "-n", "5", "-p", port};
    support::Process server(sample::command(sample::pingpong, words));
    ASSERT_TRUE(sample::listens(port));
    Words client = words;
    client.emplace_back("127.0.0.1");
    EXPECT_TRUE(sample::succeeded(sample::run(sample::pingpong, client)));
    EXPECT_TRUE(sample::succeeded(server.finish()));
}

TEST(Rdma, runs_asleep_and_with_the_smallest_memory) {
    run_pair(sample::rdma, {"-n", "5", "-e", "-s", "256", "-m", "512", "-g", "1"});
}

TEST(Containers, are_sent_and_received_without_a_copy) {
    const std::string json = sample::fresh_json();
    for (const Words& extra :
         {Words{}, Words{"-e", "-g", "1"}, Words{"-n", "1"}, Words{"-n", "333"}}) {
        Words words{"-d", "rxe0", "--json", json};
        words.insert(words.end(), extra.begin(), extra.end());
        const auto end = sample::run(sample::containers, words);
        EXPECT_TRUE(sample::succeeded(end));
        EXPECT_NE(end.out.find("all elements right"), std::string::npos);
        const Json result = Json::read_file(json);
        EXPECT_EQ(result["data_errors"].unsigned_number(), 0U);
        EXPECT_EQ(result["registration"].string(), sample::pool_registration());
    }
}

TEST(Samples, leave_no_memory_behind) {
    run_pair(sample::pingpong, {"-n", "5"});
    EXPECT_TRUE(support::eventually([] { return sample::bytes_in_use() == 0; }));
}

} // namespace
