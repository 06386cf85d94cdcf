// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// MPI programs that know nothing of hcamem, on the distribution's MPI libraries.
#include <gtest/gtest.h>

#include "launch.hpp"

namespace {

const std::vector<std::string> ucx_pools{"rc_recv_desc", "rc_send_desc", "ud_recv_skb",
                                         "ud_tx_skb"};

TEST(OpenMpi, R20_eager_buffers_of_an_unmodified_program_are_ours_and_not_pinned) {
    const auto both =
        mpi::compare("Open MPI, UCX", mpi::open_mpi(), {mpi::program("pingpong-openmpi")});
    mpi::expect_taken(both, "ucx", ucx_pools);
    EXPECT_NE(both.with.out.find(" errors=0 "), std::string::npos) << both.with.out;
}

TEST(Mpich, R20_eager_buffers_of_an_unmodified_program_are_ours_and_not_pinned) {
    const auto both = mpi::compare("MPICH, UCX", mpi::mpich(), {mpi::program("pingpong-mpich")});
    mpi::expect_taken(both, "ucx", ucx_pools);
    EXPECT_NE(both.with.out.find(" errors=0 "), std::string::npos) << both.with.out;
}

TEST(OpenMpi, libfabric_takes_its_buffers_from_us) {
    const auto both = mpi::compare("Open MPI, libfabric", mpi::open_mpi_libfabric(),
                                   {mpi::program("pingpong-openmpi")});
    mpi::expect_taken(both, "libfabric", {"ofi_bufpool"});
    EXPECT_NE(both.with.out.find(" errors=0 "), std::string::npos) << both.with.out;
}

// What ranks of one machine share is no DMA memory, and stays where UCX has it.
TEST(OpenMpi, memory_that_ranks_share_is_left_alone) {
    const auto run = mpi::launch(mpi::open_mpi("rc,sm,self"), {mpi::program("pingpong-openmpi")},
                                 mpi::Mode::take);
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_NE(run.out.find(" errors=0 "), std::string::npos) << run.out;
    for (const mpi::Report& report : run.reports) {
        for (const mpi::Pool& pool : report.pools) {
            EXPECT_FALSE(pool.name.starts_with("mm_")) << pool.name;
        }
    }
}

} // namespace
