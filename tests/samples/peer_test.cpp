// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Peers that differ, die, stop, interrupt, or are somebody else: one line, the documented exit
// code, never a hang.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <sstream>

#include "sample.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/unique_fd.hpp"

namespace {

using sample::failed_with;
using sample::Words;

struct Difference {
    const char* name;
    Words server;
    Words client;
    const char* reason;
};

class DifferingOptions : public testing::TestWithParam<Difference> {};

TEST_P(DifferingOptions, are_named_on_both_sides) {
    sample::Pair pair =
        sample::start_pair(sample::pingpong, {"-n", "10"}, GetParam().server, GetParam().client);
    EXPECT_TRUE(failed_with(sample::mismatch, GetParam().reason, pair.client.finish()));
    EXPECT_TRUE(failed_with(sample::mismatch, GetParam().reason, pair.server.finish()));
}

INSTANTIATE_TEST_SUITE_P(
    Options, DifferingOptions,
    testing::Values(Difference{"size", {"-s", "4096"}, {"-s", "4095"}, "--size"},
                    Difference{"iterations", {"-n", "11"}, {}, "--iters"},
                    Difference{"mtu", {}, {"-m", "512"}, "--mtu"},
                    Difference{"check", {"-c"}, {}, "--chk"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(OtherPeer, another_sample_is_told_apart) {
    const std::string port = sample::fresh_port();
    support::Process server(sample::command(sample::pingpong, {"-d", "rxe0", "-p", port}));
    ASSERT_TRUE(sample::listens(port));
    const auto client = sample::run(sample::rdma, {"-d", "rxe0", "-p", port, "127.0.0.1"});
    EXPECT_TRUE(failed_with(sample::mismatch, "another sample", client));
    EXPECT_TRUE(failed_with(sample::mismatch, "another sample", server.finish()));
}

/// A connection to a server that is starting.
support::UniqueFd connect_to(const std::string& port) {
    support::UniqueFd fd(support::must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_TRUE(support::eventually([&] {
        return connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    }));
    return fd;
}

TEST(OtherPeer, bytes_of_another_protocol_are_refused) {
    const std::string port = sample::fresh_port();
    support::Process server(sample::command(sample::pingpong, {"-d", "rxe0", "-p", port}));
    const auto fd = connect_to(port);
    const std::string text = "GET / HTTP/1.0\r\n\r\n";
    support::must(send(fd.get(), text.data(), text.size(), 0), "send");
    EXPECT_TRUE(failed_with(sample::mismatch, "not this sample", server.finish()));
}

TEST(OtherPeer, the_known_tool_as_client_is_refused) {
    const std::string port = sample::fresh_port();
    support::Process server(sample::command(sample::pingpong, {"-d", "rxe0", "-p", port}));
    ASSERT_TRUE(sample::listens(port));
    const auto tool =
        support::run({"ibv_rc_pingpong", "-d", "rxe0", "-g", "1", "-p", port, "127.0.0.1"});
    EXPECT_NE(tool.status, 0);
    EXPECT_TRUE(failed_with(sample::mismatch, "not this sample", server.finish()));
}

TEST(OtherPeer, silence_ends_with_the_timeout) {
    const std::string port = sample::fresh_port();
    support::Process server(
        sample::command(sample::pingpong, {"-d", "rxe0", "-p", port, "--timeout", "1"}));
    const auto fd = connect_to(port);
    EXPECT_TRUE(failed_with(sample::peer, "did not answer within 1 s", server.finish()));
}

TEST(OtherPeer, hanging_up_ends_it) {
    const std::string port = sample::fresh_port();
    support::Process server(sample::command(sample::pingpong, {"-d", "rxe0", "-p", port}));
    connect_to(port).reset();
    EXPECT_TRUE(failed_with(sample::peer, "the peer is gone", server.finish()));
}

struct Mode {
    const char* name;
    Words options;
};

class DyingPeer : public testing::TestWithParam<Mode> {};

TEST_P(DyingPeer, killed_server_is_seen_by_the_client) {
    sample::Pair pair = sample::start_endless_pair(GetParam().options);
    pair.server.signal(SIGKILL);
    EXPECT_TRUE(failed_with(sample::peer, "the peer is gone", pair.client.finish()));
}

TEST_P(DyingPeer, killed_client_is_seen_by_the_server) {
    sample::Pair pair = sample::start_endless_pair(GetParam().options);
    pair.client.signal(SIGKILL);
    EXPECT_TRUE(failed_with(sample::peer, "the peer is gone", pair.server.finish()));
}

TEST_P(DyingPeer, stopped_peer_ends_with_the_timeout) {
    Words options = GetParam().options;
    options.insert(options.end(), {"--timeout", "5"}); // living peers must manage that
    sample::Pair pair = sample::start_endless_pair(options);
    pair.server.signal(SIGSTOP);
    EXPECT_TRUE(failed_with(sample::peer, "within 5 s", pair.client.finish()));
}

TEST_P(DyingPeer, interrupted_side_says_so_and_tells_the_peer) {
    sample::Pair pair = sample::start_endless_pair(GetParam().options);
    pair.client.signal(SIGINT);
    const auto client = pair.client.finish();
    EXPECT_EQ(client.status, 128 + SIGINT);
    EXPECT_EQ(client.err, "hcamem_rc_pingpong: interrupted by signal 2\n");
    EXPECT_TRUE(failed_with(sample::peer, "the peer gave up: interrupted", pair.server.finish()));
}

INSTANTIATE_TEST_SUITE_P(Modes, DyingPeer,
                         testing::Values(Mode{"polling", {}}, Mode{"asleep", {"-e"}},
                                         Mode{"large", {"-s", "1m"}},
                                         Mode{"heap", {"--memory", "malloc"}}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Interrupt, ends_a_server_that_waits_for_its_client) {
    support::Process server(
        sample::command(sample::pingpong, {"-d", "rxe0", "-p", sample::fresh_port()}));
    server.await_output("local");
    server.signal(SIGTERM);
    const auto end = server.finish();
    EXPECT_EQ(end.status, 128 + SIGTERM);
    EXPECT_EQ(end.err, "hcamem_rc_pingpong: interrupted by signal 15\n");
}

TEST(Interrupt, leaves_nothing_behind) {
    const std::string json = sample::fresh_json();
    sample::Pair pair = sample::start_endless_pair({"--json", json});
    pair.client.signal(SIGINT);
    pair.client.finish();
    pair.server.finish();
    EXPECT_NE(access(json.c_str(), F_OK), 0) << "a result of a run that has none";
    EXPECT_TRUE(support::eventually([] { return sample::bytes_in_use() == 0; }));
}

/// Changes one byte in each half page of the pool memory of a process. False once it is gone.
bool spoil_pool_memory(pid_t pid) {
    const std::string process = "/proc/" + std::to_string(pid);
    std::istringstream maps(support::read_text(process + "/maps"));
    const support::UniqueFd memory(open((process + "/mem").c_str(), O_RDWR | O_CLOEXEC));
    bool found = false;
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/dev/infiniband/hcamem") == std::string::npos) {
            continue;
        }
        std::istringstream fields(line);
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        char dash = 0;
        fields >> std::hex >> begin >> dash >> end;
        for (std::uint64_t address = begin; address < end; address += 2048) {
            const char byte = static_cast<char>(address >> 11);
            found = pwrite(memory.get(), &byte, 1, static_cast<off_t>(address)) == 1 || found;
        }
    }
    return found;
}

TEST(WrongBytes, end_both_sides_with_their_own_code) {
    sample::Pair pair = sample::start_pair(sample::pingpong, {"-c", "-n", "100", "-s", "64k"});
    pair.server.await_output("remote");
    pair.client.await_output("remote");
    // Again and again to its end, since a byte counts only between being filled and being checked.
    ASSERT_TRUE(spoil_pool_memory(pair.server.pid()));
    while (spoil_pool_memory(pair.server.pid())) {
    }
    const auto server = pair.server.finish();
    const auto client = pair.client.finish();
    EXPECT_EQ(server.status, sample::data) << server.err;
    EXPECT_EQ(client.status, sample::data) << client.err;
    EXPECT_NE((server.err + client.err).find("bytes received were wrong"), std::string::npos);
    EXPECT_EQ(server.out.find("was right"), std::string::npos);
    EXPECT_EQ(client.out.find("was right"), std::string::npos);
}

} // namespace
