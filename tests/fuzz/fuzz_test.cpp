// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Runs hcamem_fuzz. HCAMEM_FUZZ_SECONDS is the time for each of the two tests with R18 (default
// 10), HCAMEM_FUZZ_SEED the seed (default: a new one, which is printed).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/process.hpp"

using support::Finished;
using support::Process;

namespace {

Finished fuzz(const std::vector<std::string>& options) {
    constexpr std::chrono::hours longest(1); // it ends by itself
    std::vector<std::string> arguments{
        std::filesystem::read_symlink("/proc/self/exe").replace_filename("hcamem_fuzz")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return Process(arguments).finish(longest);
}

void fuzz_as_set(std::vector<std::string> options) {
    const char* seconds = std::getenv("HCAMEM_FUZZ_SECONDS");
    options.insert(options.end(), {"--seconds", seconds == nullptr ? "10" : seconds});
    if (const char* seed = std::getenv("HCAMEM_FUZZ_SEED")) {
        options.insert(options.end(), {"--seed", seed});
    }
    const Finished finished = fuzz(options);
    std::printf("%s%s", finished.out.c_str(), finished.err.c_str());
    EXPECT_EQ(finished.status, 0);
}

} // namespace

TEST(Fuzz, R18_unprivileged_fuzz_without_a_memory_cgroup) {
    fuzz_as_set({});
}

TEST(Fuzz, R18_unprivileged_fuzz_with_a_memory_cgroup) {
    // Less than the user may lock, so that the cgroup says no first.
    fuzz_as_set({"--memory-max", "50331648"});
}

// The fuzzer's checks are worth something only if they see one wrong byte, and a seed only if it
// leads there again.
TEST(Fuzz, one_wrong_byte_is_noticed_at_the_same_step_every_time) {
    const std::vector<std::string> options{"--spoil", "--seed", "1", "--processes", "1"};
    const auto failure_of = [](const Finished& finished) {
        EXPECT_EQ(finished.status, 1) << finished.out << finished.err;
        const std::string& out = finished.out;
        const auto begin = out.find("FAILED: process 0, ");
        EXPECT_NE(begin, std::string::npos) << out;
        EXPECT_NE(out.find("again: hcamem_fuzz --seed 1 --processes 1 "), std::string::npos) << out;
        // The step and the operation, but not the address.
        return begin == std::string::npos ? ""
                                          : out.substr(begin, out.find(": ", begin + 8) - begin);
    };
    const std::string failure = failure_of(fuzz(options));
    std::printf("%s\n", failure.c_str());
    EXPECT_EQ(failure_of(fuzz(options)), failure);
}
