// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The eager and rendezvous message layer, as the program that runs over it.
#include <gtest/gtest.h>

#include <csignal>
#include <vector>

#include "sample.hpp"
#include "support/guest.hpp"
#include "support/page_pins.hpp"

namespace {

using sample::failed_with;
using sample::Words;
using support::Json;

/// All ranks from one command, asleep while they wait: more ranks than processors. The result of
/// rank 0.
Json run_all(const Words& options) {
    const std::string json = sample::fresh_json();
    Words words{"--self", "-d", "rxe0", "-e", "-c", "--json", json};
    words.insert(words.end(), options.begin(), options.end());
    const auto end = sample::run(sample::eager_pool, words);
    EXPECT_TRUE(sample::succeeded(end));
    EXPECT_NE(end.out.find("every byte of every message was right"), std::string::npos) << end.out;
    Json result = Json::read_file(json);
    EXPECT_EQ(result["data_errors"].unsigned_number(), 0U);
    EXPECT_GT(result["checked_messages"].unsigned_number(), 0U);
    return result;
}

std::uint64_t number(const Json& result, const char* name) {
    return result[name].unsigned_number();
}

TEST(EagerPool, messages_of_every_size_are_right_between_two) {
    const Json result = run_all({"-n", "5"});
    EXPECT_EQ(result["registration"].string(), sample::pool_registration());
    EXPECT_EQ(result["bytes"].list().front().unsigned_number(), 64U);
    EXPECT_EQ(result["bytes"].list().back().unsigned_number(), 1U << 20);
    EXPECT_GT(number(result, "eager_sends"), 0U);
    EXPECT_GT(number(result, "rendezvous_sends"), 0U);
    EXPECT_EQ(number(result, "staged"), 0U) << "a copy of what needs none";
}

TEST(EagerPool, messages_are_right_among_three_and_four) {
    for (const char* ranks : {"3", "4"}) {
        for (const char* bytes : {"64", "64k"}) {
            EXPECT_EQ(number(run_all({"-n", "4", "-N", ranks, "-s", bytes}), "ranks"),
                      static_cast<std::uint64_t>(std::stoi(ranks)));
        }
    }
}

TEST(EagerPool, the_threshold_divides_eager_from_rendezvous) {
    EXPECT_EQ(number(run_all({"-n", "3", "-t", "1000", "-s", "1000"}), "rendezvous_sends"), 0U);
    EXPECT_GT(number(run_all({"-n", "3", "-t", "1000", "-s", "1001"}), "rendezvous_sends"), 0U);
    EXPECT_GT(number(run_all({"-n", "3", "-t", "0", "-s", "1"}), "rendezvous_sends"), 0U);
}

// One credit, one send buffer, none to park in: everything has to wait, and nothing may for ever.
TEST(EagerPool, the_least_of_everything_is_enough) {
    for (const char* bytes : {"100", "20000"}) {
        const Json result = run_all({"-n", "10", "-N", "3", "-s", bytes, "--credits", "1",
                                     "--send-buffers", "1", "--park-buffers", "0"});
        EXPECT_GT(number(result, "credit_waits"), 0U);
        EXPECT_GT(number(result, "credit_messages"), 0U);
        EXPECT_EQ(number(result, "parked"), number(result, "unreplaced"));
    }
}

TEST(EagerPool, messages_from_the_heap_are_copied_and_right) {
    EXPECT_GT(number(run_all({"-n", "3", "-s", "50000", "--heap-messages"}), "staged"), 0U);
    EXPECT_EQ(number(run_all({"-n", "3", "-s", "500", "--heap-messages"}), "staged"), 0U);
}

/// The ranks as processes of their own. The first is rank 0.
std::vector<support::Process> start_ranks(unsigned count, const Words& common,
                                          const std::vector<Words>& own = {}) {
    const std::string port = sample::fresh_port();
    std::vector<support::Process> ranks;
    for (unsigned i = 0; i < count; ++i) {
        Words words{"-d", "rxe0", "-e", "-p", port, "-N", std::to_string(count)};
        words.insert(words.end(), common.begin(), common.end());
        if (i < own.size()) {
            words.insert(words.end(), own[i].begin(), own[i].end());
        }
        if (i > 0) {
            words.insert(words.end(), sample::patiently.begin(), sample::patiently.end());
            words.emplace_back("127.0.0.1");
        }
        ranks.emplace_back(sample::command(sample::eager_pool, words));
    }
    return ranks;
}

std::vector<support::Process> start_endless_ranks(unsigned count, const Words& options) {
    Words words{"-n", "1000000000"};
    words.insert(words.end(), options.begin(), options.end());
    auto ranks = start_ranks(count, words);
    ranks.front().await_output("all to all");
    return ranks;
}

std::vector<support::AddressRange> ranges_of(const Json& result) {
    std::vector<support::AddressRange> ranges;
    for (const auto& range : result["address_ranges"].list()) {
        ranges.push_back(
            {range.list().at(0).unsigned_number(), range.list().at(1).unsigned_number()});
    }
    return ranges;
}

TEST(EagerPool, R02_no_page_of_its_memory_is_pinned_by_address) {
    support::PagePins probes;
    const std::vector<Words> json{{"--json", sample::fresh_json()},
                                  {"--json", sample::fresh_json()}};
    const auto run = [&](const Words& options) {
        probes.clear();
        auto ranks = start_ranks(2, options, json);
        for (auto& rank : ranks) {
            EXPECT_TRUE(sample::succeeded(rank.finish()));
        }
    };
    run({"-n", "3", "-c", "--memory", "malloc"});
    for (const auto& words : json) {
        const auto pid = static_cast<pid_t>(Json::read_file(words[1])["pid"].unsigned_number());
        std::uint64_t pins = 0;
        for (const auto& call : probes.calls()) {
            pins += call.thread == pid ? 1 : 0;
        }
        EXPECT_GT(pins, 0U) << "the probes see nothing";
    }
    run({"-n", "3", "-c"});
    for (const auto& words : json) {
        const auto ranges = ranges_of(Json::read_file(words[1]));
        ASSERT_FALSE(ranges.empty());
        const auto pins = support::touching(probes.calls(), ranges).size();
        if (support::rxe_imports_dma_bufs()) {
            EXPECT_EQ(pins, 0U);
        } else {
            EXPECT_GT(pins, 0U) << "registered by address";
        }
    }
    EXPECT_TRUE(support::eventually([] { return sample::bytes_in_use() == 0; }));
}

TEST(EagerPool, options_that_differ_are_named_on_both_sides) {
    const std::vector<std::vector<Words>> pairs{{{"-s", "64"}, {"-s", "65"}, {"--size"}},
                                                {{"-t", "64"}, {"-t", "65"}, {"--threshold"}},
                                                {{"--credits", "3"}, {}, {"--credits"}},
                                                {{"-c"}, {}, {"--chk"}}};
    for (const auto& pair : pairs) {
        auto ranks = start_ranks(2, {"-n", "3"}, {pair[0], pair[1]});
        EXPECT_TRUE(failed_with(sample::mismatch, pair[2][0], ranks[0].finish()));
        EXPECT_TRUE(failed_with(sample::mismatch, pair[2][0], ranks[1].finish()));
    }
}

TEST(EagerPool, another_sample_is_told_apart) {
    const std::string port = sample::fresh_port();
    support::Process server(sample::command(sample::eager_pool, {"-d", "rxe0", "-p", port}));
    ASSERT_TRUE(sample::listens(port));
    const auto client = sample::run(sample::pingpong, {"-d", "rxe0", "-p", port, "127.0.0.1"});
    EXPECT_TRUE(failed_with(sample::mismatch, "another sample", client));
    EXPECT_TRUE(failed_with(sample::mismatch, "another sample", server.finish()));
}

TEST(EagerPool, R05_a_killed_rank_ends_all_and_nothing_is_left) {
    // One of the two is measured with rank 0, and one waits for them: who connects first is 1.
    for (const int victim : {1, 2}) {
        for (const char* bytes : {"64", "256k"}) {
            auto ranks = start_endless_ranks(3, {"-s", bytes});
            ranks[victim].signal(SIGKILL);
            EXPECT_TRUE(failed_with(sample::peer, "the peer is gone", ranks[0].finish()));
            EXPECT_TRUE(failed_with(sample::peer, "the peer is gone", ranks[3 - victim].finish()));
            EXPECT_TRUE(support::eventually([] { return sample::bytes_in_use() == 0; }));
        }
    }
}

TEST(EagerPool, R05_a_killed_rank_0_ends_all_and_nothing_is_left) {
    auto ranks = start_endless_ranks(3, {"-s", "64"});
    ranks[0].signal(SIGKILL);
    EXPECT_TRUE(failed_with(sample::peer, "the peer is gone", ranks[1].finish()));
    EXPECT_TRUE(failed_with(sample::peer, "the peer is gone", ranks[2].finish()));
    EXPECT_TRUE(support::eventually([] { return sample::bytes_in_use() == 0; }));
}

TEST(EagerPool, a_stopped_rank_ends_all_with_the_timeout) {
    auto ranks = start_endless_ranks(2, {"-s", "64", "--timeout", "5"});
    ranks[1].signal(SIGSTOP);
    // 5 s, or 50 s if rank 0 was in a barrier.
    EXPECT_TRUE(failed_with(sample::peer, "within 5", ranks[0].finish()));
}

TEST(EagerPool, an_interrupted_rank_says_so_and_tells_all) {
    auto ranks = start_endless_ranks(3, {"-s", "64"});
    ranks[2].signal(SIGINT);
    EXPECT_TRUE(failed_with(sample::peer, "the peer gave up: interrupted", ranks[0].finish()));
    EXPECT_TRUE(failed_with(sample::peer, "interrupted", ranks[1].finish()));
    const auto end = ranks[2].finish();
    EXPECT_EQ(end.status, 128 + SIGINT);
    EXPECT_EQ(end.err, "hcamem_eager_pool: interrupted by signal 2\n");
}

TEST(EagerPool, interrupting_all_ranks_of_one_command_leaves_nothing) {
    support::Process all(sample::command(
        sample::eager_pool, {"--self", "-N", "3", "-d", "rxe0", "-e", "-n", "1000000000"}));
    all.await_output("all to all");
    all.signal(SIGINT);
    EXPECT_EQ(all.finish().status, 128 + SIGINT);
    EXPECT_TRUE(support::eventually([] { return sample::bytes_in_use() == 0; }));
}

TEST(EagerPool, over_the_cap_says_so_before_it_waits_for_anyone) {
    const support::ModuleParameter cap("max_bytes", 0);
    EXPECT_TRUE(
        failed_with(sample::memory, "max_bytes", sample::run(sample::eager_pool, {"-d", "rxe0"})));
    EXPECT_TRUE(failed_with(sample::memory, "max_bytes",
                            sample::run(sample::eager_pool, {"-d", "rxe0", "--self"})));
}

TEST(HostEagerPoolCommandLine, its_own_options_have_ranges) {
    const auto refused = [](const char* line, const Words& words) {
        EXPECT_TRUE(failed_with(sample::usage, line, sample::run(sample::eager_pool, words)));
    };
    refused("--ranks 1", {"-N", "1"});
    refused("--ranks 65", {"--ranks", "65"});
    refused("--threshold 2m", {"-t", "2m"});
    refused("--credits 0", {"--credits", "0"});
    refused("--send-buffers 0", {"--send-buffers", "0"});
    refused("--park-buffers x", {"--park-buffers", "x"});
    refused("--memory hugetlb", {"--memory", "hugetlb"});
    refused("--self: takes no host", {"--self", "host"});
}

} // namespace
