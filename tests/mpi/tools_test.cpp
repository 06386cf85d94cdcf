// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Benchmarks of others, unmodified.
#include <gtest/gtest.h>

#include <sstream>

#include "launch.hpp"

namespace {

const std::vector<std::string> ucx_pools{"rc_recv_desc", "rc_send_desc", "ud_recv_skb",
                                         "ud_tx_skb"};

/// Its integrity check, which compares what arrives.
mpi::Words netpipe(const std::string& program) {
    return {program, "-l", "1", "-u", "16384", "-n",
            "3",     "-p", "0", "-i", "-o",    "/tmp/netpipe.out"};
}

TEST(NetPipe, of_open_mpi) {
    const auto both = mpi::compare("NetPIPE, Open MPI", {mpi::open_mpi(), netpipe("NPopenmpi")});
    mpi::expect_taken(both, "ucx", ucx_pools);
}

TEST(NetPipe, of_mpich) {
    const auto both = mpi::compare("NetPIPE, MPICH", {mpi::mpich(), netpipe("NPmpich2")});
    mpi::expect_taken(both, "ucx", ucx_pools);
}

/// In a shell: waits until somebody listens.
std::string await_listener(const std::string& port) {
    return "for ((i = 0; i < 1800; i++)); do ss -Hltn 'sport = :" + port +
           "' | grep -q LISTEN && break; sleep 0.1; done; ";
}

/// A server, and a client once that listens; the client's status.
mpi::Words pair(const std::string& server, const std::string& port, const std::string& client) {
    return {"bash", "-c",
            server + " & " + await_listener(port) + client +
                "; status=$?; wait $! && exit $status"};
}

/// "Final: iterations percentile average overall ...", times of a message in microseconds.
double usec_of_ucx_perftest(const std::string& out) {
    const auto at = out.rfind("Final:");
    std::istringstream fields(at == std::string::npos ? "" : out.substr(at + 6));
    double iterations = 0;
    double percentile = 0;
    double average = 0;
    double overall = 0;
    return fields >> iterations >> percentile >> average >> overall ? overall : 0;
}

/// The last line of numbers: bytes, iterations, then for latency minimum, maximum, typical
/// microseconds; for bandwidth peak, average and millions of messages in a second.
double usec_of_perftest(const std::string& out) {
    const bool latency = out.find("t_typical") != std::string::npos;
    double found = 0;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        double bytes = 0;
        double iterations = 0;
        double first = 0;
        double second = 0;
        double third = 0;
        if (fields >> bytes >> iterations >> first >> second >> third && third > 0) {
            found = latency ? third : 1 / third;
        }
    }
    return found;
}

TEST(UcxPerftest, tag_matching_over_rc) {
    const mpi::Command command{
        .words = pair("ucx_perftest -p 21001", "21001",
                      "ucx_perftest -p 21001 -t tag_lat -s 1024 -n 50 -w 5 127.0.0.1"),
        .environment = {"UCX_TLS=rc,self", "UCX_NET_DEVICES=rxe1:1", "UCX_IB_GID_INDEX=0"},
        .usec_in = usec_of_ucx_perftest};
    const auto both = mpi::compare("ucx_perftest", command);
    mpi::expect_taken(both, "ucx", ucx_pools);
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++found;
    }
    return found;
}

// UCX's own registrations need more than that, too, and it goes on trying: both are ended once both
// have said it. The line is ours, one a process.
TEST(UcxPerftest, memlock_limit_of_8_mib_is_named) {
    const std::string limited =
        "(ulimit -l 8192; exec setpriv --bounding-set=-ipc_lock ucx_perftest -p 21002";
    const std::string script =
        limited + ") 2>>/tmp/memlock & server=$!; " + await_listener("21002") + limited +
        " -t tag_lat -n 50 -w 5 127.0.0.1) 2>>/tmp/memlock & client=$!; "
        "for ((i = 0; i < 1800; i++)); do "
        "(($(grep -c 'memory is used from now on' /tmp/memlock) < 2)) || break; "
        "sleep 0.1; done; "
        "kill $server $client; wait; cat /tmp/memlock >&2";
    const auto run = mpi::launch({.words = {"bash", "-c", script},
                                  .environment = {"UCX_TLS=rc,self", "UCX_NET_DEVICES=rxe1:1",
                                                  "UCX_IB_GID_INDEX=0", "HCAMEM_PRELOAD_STRICT=0"}},
                                 mpi::Mode::take);
    EXPECT_EQ(count(run.err, "over RLIMIT_MEMLOCK, which is 8 MiB"), 2U) << run.err;
    EXPECT_EQ(count(run.err, "ordinary memory is used from now on"), 2U) << run.err;
}

/// These register what they allocate themselves.
class Perftest : public testing::TestWithParam<std::string> {};

TEST_P(Perftest, buffers_are_ours_by_malloc) {
    static int port = 21100;
    const std::string number = std::to_string(++port);
    // Not around the shell, which forks children that go on with its memory.
    const std::string tool =
        mpi::launcher() + " --malloc=4K " + GetParam() + " -d rxe0 -x 1 -F -n 200 -p " + number;
    const auto both = mpi::compare(GetParam(), {.words = pair(tool, number, tool + " 127.0.0.1"),
                                                .usec_in = usec_of_perftest,
                                                .preload = false});
    mpi::expect_taken(both, "malloc", {"blocks"});
}

INSTANTIATE_TEST_SUITE_P(Tools, Perftest,
                         testing::Values("ib_send_bw", "ib_write_lat", "ib_read_bw",
                                         "ib_atomic_bw"),
                         [](const auto& each) { return each.param; });

} // namespace
