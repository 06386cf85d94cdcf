// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Unmodified RDMA tools on our memory, and beside our samples.
#include <gtest/gtest.h>

#include "sample.hpp"
#include "support/guest.hpp"

namespace {

using sample::Words;

bool maps_the_node(pid_t pid) {
    return support::read_text("/proc/" + std::to_string(pid) + "/maps").find(sample::node_path()) !=
           std::string::npos;
}

/// A perftest tool as server and client, both with their buffers in a bare mmap() of the node.
void run_perftest(const std::string& tool, const Words& options) {
    const std::string port = sample::fresh_port();
    Words words{tool, "-d", "rxe0", "-x", "1", "-F", "-p", port, "--mmap=" + sample::node_path()};
    words.insert(words.end(), options.begin(), options.end());
    support::Process server(words);
    words.emplace_back("127.0.0.1");
    ASSERT_TRUE(sample::listens(port));
    support::Process client(words);
    EXPECT_TRUE(support::eventually([&] { return maps_the_node(client.pid()); }));
    EXPECT_TRUE(support::eventually([&] { return maps_the_node(server.pid()); }));
    const auto client_end = client.finish();
    EXPECT_EQ(client_end.status, 0) << client_end.out << client_end.err;
    const auto server_end = server.finish();
    EXPECT_EQ(server_end.status, 0) << server_end.out << server_end.err;
}

TEST(StockTools, ib_write_bw_maps_our_node) {
    run_perftest("ib_write_bw", {"-s", "4096", "-D", "3"});
}

TEST(StockTools, ib_send_lat_maps_our_node) {
    run_perftest("ib_send_lat", {"-s", "64", "-D", "3"});
}

TEST(StockTools, ibv_rc_pingpong_runs_on_the_same_hca_beside_ours) {
    sample::Pair ours = sample::start_endless_pair({"-c"});
    const std::string port = sample::fresh_port();
    const Words words{"ibv_rc_pingpong", "-d", "rxe0", "-g", "1", "-n", "50", "-c", "-p", port};
    support::Process server(words);
    ASSERT_TRUE(sample::listens(port));
    Words client = words;
    client.emplace_back("127.0.0.1");
    const auto end = support::run(client);
    EXPECT_EQ(end.status, 0) << end.out << end.err;
    EXPECT_NE(end.out.find("50 iters"), std::string::npos) << end.out;
    EXPECT_EQ(server.finish().status, 0);
    // Ours still runs: it is ended here, not by the neighbour.
    ours.client.signal(2);
    EXPECT_EQ(ours.client.finish().status, 130);
    ours.server.finish();
}

} // namespace
