// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the preload library costs a program that has nothing to do with RDMA, in instructions,
// which do not depend on who else uses the machine.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "run.hpp"

namespace {

using preload::build_folder;

/// Instructions in user space from the first of the loader to exit.
std::uint64_t instructions(const std::string& program, const std::string& preload) {
    support::ProcessOptions how;
    if (!preload.empty()) {
        how.environment = {"LD_PRELOAD=" + preload};
    }
    const auto end = support::run(
        {"valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program}, how);
    const auto at = end.err.find("Collected : ");
    if (end.status != 0 || at == std::string::npos) {
        throw std::runtime_error("valgrind: " + end.err);
    }
    return std::stoull(end.err.substr(at + std::string("Collected : ").size()));
}

TEST(Overhead, starting_a_program_costs_less_than_a_millisecond) {
    const std::string library = build_folder() + "/lib/libhcamem-preload.so";
    const auto without = instructions("/bin/true", "");
    const auto with = instructions("/bin/true", library);
    RecordProperty("instructions_without", std::to_string(without));
    RecordProperty("instructions_with", std::to_string(with));
    ASSERT_GT(with, without);            // or it was not loaded
    EXPECT_LT(with - without, 1000000U); // a processor does a thousand in a microsecond
}

TEST(Overhead, allocating_costs_what_it_did) {
    const std::string library = build_folder() + "/lib/libhcamem-preload.so";
    const std::string loop = build_folder() + "/tests/preload/malloc_loop";
    const auto without = instructions(loop, "");
    const auto with = instructions(loop, library);
    RecordProperty("instructions_without", std::to_string(without));
    RecordProperty("instructions_with", std::to_string(with));
    ASSERT_GT(with, without);
    EXPECT_LE(static_cast<double>(with) / static_cast<double>(without), 1.02);
}

// Larger blocks are the pool's affair; smaller ones pay for being told apart. Linked with the
// library, since valgrind's launcher would take it out of LD_PRELOAD.
TEST(Overhead, allocating_small_blocks_under_the_malloc_library) {
    const std::string loop = build_folder() + "/tests/preload/malloc_loop";
    const auto without = instructions(loop, "");
    const auto with = instructions(loop + "_linked", "");
    RecordProperty("instructions_without", std::to_string(without));
    RecordProperty("instructions_with", std::to_string(with));
    ASSERT_GT(with, without);
    EXPECT_LE(static_cast<double>(with) / static_cast<double>(without), 1.3);
}

} // namespace
