// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Benchmarks of others, unmodified.
#include <gtest/gtest.h>

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
    const auto both = mpi::compare("NetPIPE, Open MPI", mpi::open_mpi(), netpipe("NPopenmpi"));
    mpi::expect_taken(both, "ucx", ucx_pools);
}

TEST(NetPipe, of_mpich) {
    const auto both = mpi::compare("NetPIPE, MPICH", mpi::mpich(), netpipe("NPmpich2"));
    mpi::expect_taken(both, "ucx", ucx_pools);
}

/// A server, and a client once that listens; the client's status.
mpi::Words pair(const std::string& server, const std::string& port, const std::string& client) {
    return {"bash", "-c",
            server + " & for ((i = 0; i < 600; i++)); do ss -Hltn 'sport = :" + port +
                "' | grep -q LISTEN && break; sleep 0.1; done; " + client +
                "; status=$?; wait $! && exit $status"};
}

TEST(UcxPerftest, tag_matching_over_rc) {
    const std::string common = "ucx_perftest -p 21001 -t tag_lat -s 1024 -n 50 -w 5";
    const auto both = mpi::compare(
        "ucx_perftest", {}, pair("ucx_perftest -p 21001", "21001", common + " 127.0.0.1"),
        {"UCX_TLS=rc,self", "UCX_NET_DEVICES=rxe1:1", "UCX_IB_GID_INDEX=0"});
    mpi::expect_taken(both, "ucx", ucx_pools);
}

} // namespace
