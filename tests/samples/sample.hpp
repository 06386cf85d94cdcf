// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// How the tests call the samples and what they expect of every failure.
#ifndef TESTS_SAMPLES_SAMPLE_HPP
#define TESTS_SAMPLES_SAMPLE_HPP

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/json.hpp"
#include "support/process.hpp"

namespace sample {

inline constexpr const char* pingpong = "hcamem_rc_pingpong";
inline constexpr const char* rdma = "hcamem_rdma";
inline constexpr const char* eager_pool = "hcamem_eager_pool";
inline constexpr const char* containers = "stl_containers";

/// Exit codes as --help documents them.
enum Exit {
    success,
    unexpected,
    usage,
    hca,
    memory,
    no_connection,
    mismatch,
    peer,
    work_request,
    data
};

using Words = std::vector<std::string>;

/// The path of a sample, beside the directory of this test program.
std::string path(const std::string& name);

/// NAME WORD...
Words command(const std::string& name, const Words& words);

/// Runs one to its end.
support::Finished run(const std::string& name, const Words& words,
                      const support::ProcessOptions& how = {});

/// The node of rxe0.
std::string node_path();

/// What everybody holds through that node.
std::uint64_t bytes_in_use();

/// A TCP port that no other test of this program uses.
std::string fresh_port();

/// Options of a client whose server is starting: it may be slow to listen.
inline const Words patiently{"--wait", "180"};

/// Waits until somebody listens at the port, for clients that try but once.
[[nodiscard]] bool listens(const std::string& port);

/// A server and a client of it that run at the same time.
struct Pair {
    support::Process server;
    support::Process client;
};

/// Starts both on HCA rxe0; `common` are options of both, before those of each side. The client
/// waits for the server.
Pair start_pair(const std::string& name, const Words& common, const Words& server = {},
                const Words& client = {});

/// Starts both and waits until both know each other, so that the run itself has begun.
Pair start_endless_pair(const Words& common);

/// Both ended with 0 and said nothing on stderr.
testing::AssertionResult succeeded(const support::Finished& end);

/// Ended with `code`, and exactly one line on stderr, which begins with the name and contains
/// `reason`; no result on stdout.
testing::AssertionResult failed_with(Exit code, const std::string& reason,
                                     const support::Finished& end);

/// A file name for a JSON result, new each time.
std::string fresh_json();

/// "dma_buf" or "user_pages": how this boot registers pool memory.
std::string pool_registration();

} // namespace sample

#endif
