// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Runs hcamem_fuzz. HCAMEM_FUZZ_SECONDS is the time for each test (default 10), HCAMEM_FUZZ_SEED
// the seed (default: a new one, which is printed).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/guest.hpp"
#include "support/json.hpp"
#include "support/process.hpp"

using namespace support;

namespace {

std::string setting(const char* name, const std::string& otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : value;
}

/// A run of the fuzzer.
class FuzzerRun {
  public:
    explicit FuzzerRun(const std::string& name, const std::vector<std::string>& options)
        : json_(environment("HCAMEM_RESULTS") + "/fuzz-" + name + ".result") {
        std::vector<std::string> arguments{
            std::filesystem::read_symlink("/proc/self/exe").replace_filename("hcamem_fuzz"),
            "--seconds", setting("HCAMEM_FUZZ_SECONDS", "10"), "--json", json_};
        if (const std::string seed = setting("HCAMEM_FUZZ_SEED", ""); !seed.empty()) {
            arguments.insert(arguments.end(), {"--seed", seed});
        }
        arguments.insert(arguments.end(), options.begin(), options.end());
        Process process(arguments);
        const auto seconds = std::stoul(arguments[2]);
        finished_ = process.finish(std::chrono::seconds(seconds + 600));
    }

    void print() const {
        std::fputs(finished_.out.c_str(), stdout);
        std::fputs(finished_.err.c_str(), stderr);
    }
    [[nodiscard]] int status() const { return finished_.status; }
    [[nodiscard]] const std::string& output() const { return finished_.out; }
    [[nodiscard]] Json result() const { return Json::read_file(json_); }

  private:
    std::string json_;
    Finished finished_;
};

/// That nothing went wrong means something only where something went on.
void expect_it_happened(const Json& result) {
    for (const char* operation :
         {"open",       "create",       "mmap",   "bare mmap",   "write",         "verify",
          "own memory", "kernel copy",  "munmap", "mprotect",    "madvise",       "mremap",
          "export",     "dma-buf mmap", "fork",   "fork beside", "fork and kill", "exec",
          "vmsplice",   "drain",        "send",   "receive",     "race"}) {
        EXPECT_GT(result["operations"][operation]["done"].unsigned_number(), 0U) << operation;
    }
    EXPECT_GT(result["kills"].unsigned_number(), 0U);
    EXPECT_GT(result["bystander_rounds"].unsigned_number(), 0U);
}

constexpr const char* memory_max = "100663296"; // bytes; the fuzzers alone may lock 64 MiB

} // namespace

TEST(Fuzz, R18_unprivileged_fuzz_without_a_memory_cgroup) {
    const FuzzerRun run("without-cgroup", {});
    run.print();
    ASSERT_EQ(run.status(), 0);
    expect_it_happened(run.result());
}

TEST(Fuzz, R18_unprivileged_fuzz_with_a_memory_cgroup) {
    const FuzzerRun run("with-cgroup", {"--memory-max", memory_max});
    run.print();
    ASSERT_EQ(run.status(), 0);
    expect_it_happened(run.result());
}

// The fuzzer's checks are worth something only if they see one wrong byte.
TEST(Fuzz, one_wrong_byte_is_noticed) {
    const FuzzerRun run("spoiled", {"--spoil"});
    EXPECT_EQ(run.status(), 1) << run.output();
    EXPECT_NE(run.output().find("FAILED: process 0"), std::string::npos) << run.output();
    EXPECT_NE(run.output().find("again: hcamem_fuzz --seed"), std::string::npos) << run.output();
}
