// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// MPI programs that know nothing of hcamem, on the distribution's MPI libraries.
#include <gtest/gtest.h>

#include "launch.hpp"
#include "support/guest.hpp"
#include "support/process.hpp"

namespace {

const std::vector<std::string> ucx_pools{"rc_recv_desc", "rc_send_desc", "ud_recv_skb",
                                         "ud_tx_skb"};

mpi::Comparison compare_pingpong(const std::string& name, const mpi::Words& launcher,
                                 const std::string& program, bool preload = true) {
    return mpi::compare(name, {.launcher = launcher,
                               .words = {mpi::program(program)},
                               .usec_in = mpi::usec_of_pingpong,
                               .preload = preload});
}

TEST(OpenMpi, R20_eager_buffers_of_an_unmodified_program_are_ours_and_not_pinned) {
    const auto both = compare_pingpong("Open MPI, UCX", mpi::open_mpi(), "pingpong-openmpi");
    mpi::expect_taken(both, "ucx", ucx_pools);
    EXPECT_NE(both.with.out.find(" errors=0 "), std::string::npos) << both.with.out;
}

TEST(Mpich, R20_eager_buffers_of_an_unmodified_program_are_ours_and_not_pinned) {
    const auto both = compare_pingpong("MPICH, UCX", mpi::mpich(), "pingpong-mpich");
    mpi::expect_taken(both, "ucx", ucx_pools);
    EXPECT_NE(both.with.out.find(" errors=0 "), std::string::npos) << both.with.out;
}

TEST(OpenMpi, libfabric_takes_its_buffers_from_us) {
    const auto both =
        compare_pingpong("Open MPI, libfabric", mpi::open_mpi_libfabric(), "pingpong-openmpi");
    mpi::expect_taken(both, "libfabric", {"ofi_bufpool"});
    EXPECT_NE(both.with.out.find(" errors=0 "), std::string::npos) << both.with.out;
}

TEST(OpenMpi, R05_a_killed_rank_leaves_nothing_behind) {
    mpi::Words words = mpi::open_mpi();
    words.insert(words.end(), {mpi::launcher(), mpi::program("pingpong-openmpi"), "forever"});
    support::ProcessOptions how;
    how.environment = mpi::open_mpi_environment();
    support::Process run(words, how);
    run.await_output("going on");
    EXPECT_GT(mpi::held_bytes(), 64U << 20);
    support::must_shell("kill -9 $(pgrep -o -x pingpong-openmp)");
    EXPECT_NE(run.finish().status, 0); // mpirun ends the other rank
    EXPECT_TRUE(support::eventually([] { return mpi::held_bytes() == 0; }));
}

// The component, from its folder beside the library: no LD_PRELOAD.
mpi::Words with_component() {
    mpi::Words words = mpi::open_mpi();
    words.insert(words.end(), {"--mca", "mca_base_component_path",
                               "SYSTEM_DEFAULT:" + mpi::library_folder() + "/openmpi"});
    return words;
}

TEST(OpenMpiComponent, does_without_preloading_what_the_preload_library_does) {
    const auto both =
        compare_pingpong("Open MPI, component", with_component(), "pingpong-openmpi", false);
    mpi::expect_taken(both, "ucx", ucx_pools);
    EXPECT_NE(both.with.out.find(" errors=0 "), std::string::npos) << both.with.out;
}

TEST(OpenMpiComponent, serves_mpi_alloc_mem_where_the_hint_asks_for_it) {
    const auto run = mpi::launch({.launcher = with_component(),
                                  .words = {mpi::program("alloc_mem-openmpi")},
                                  .preload = false},
                                 mpi::Mode::take);
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    ASSERT_EQ(run.reports.size(), 2U);
    for (const mpi::Report& report : run.reports) {
        std::uint64_t bytes = 0;
        for (const mpi::Pool& pool : report.pools) {
            bytes += pool.name == "MPI_Alloc_mem" ? pool.bytes : 0;
        }
        EXPECT_GE(bytes, 1U << 20); // the hinted block,
        EXPECT_LT(bytes, 2U << 20); // not the other
    }
}

// Open MPI's answer to who it is, put in front of it.
TEST(OpenMpiComponent, does_nothing_in_another_version_and_says_so) {
    mpi::Words launcher = with_component();
    launcher.insert(launcher.end(), {"-x", "LD_PRELOAD=" + mpi::program("libother_version.so")});
    const auto run = mpi::launch(
        {.launcher = launcher, .words = {mpi::program("alloc_mem-openmpi")}, .preload = false},
        mpi::Mode::take);
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_NE(run.err.find("is for Open MPI 4.1 and does nothing in Open MPI v5.0.3\n"),
              std::string::npos)
        << run.err;
    EXPECT_TRUE(run.reports.empty());
}

TEST(OpenMpi, a_program_may_be_linked_with_the_preload_library) {
    const auto run = mpi::launch(
        {.launcher = mpi::open_mpi(), .words = {mpi::program("linked-openmpi")}, .preload = false},
        mpi::Mode::take);
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_NE(run.out.find(" errors=0 "), std::string::npos) << run.out;
    EXPECT_GT(run.taken_bytes(), 64U << 20);
    EXPECT_EQ(run.pins != 0, !support::rxe_imports_dma_bufs());
}

// What ranks of one machine share is no DMA memory, and stays where UCX has it.
TEST(OpenMpi, memory_that_ranks_share_is_left_alone) {
    const auto run = mpi::launch({mpi::open_mpi("rc,sm,self"), {mpi::program("pingpong-openmpi")}},
                                 mpi::Mode::take);
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_NE(run.out.find(" errors=0 "), std::string::npos) << run.out;
    ASSERT_EQ(run.reports.size(), 2U);
    EXPECT_GT(run.taken_bytes(), 0U); // what is not shared is
    for (const mpi::Report& report : run.reports) {
        for (const mpi::Pool& pool : report.pools) {
            EXPECT_FALSE(pool.name.starts_with("mm_")) << pool.name;
        }
    }
}

} // namespace
