// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Starts the fuzzing processes and the bystander, kills some, replaces those that end, and looks
// at the end whether everything was given back.
#ifndef TESTS_FUZZ_SUPERVISOR_HPP
#define TESTS_FUZZ_SUPERVISOR_HPP

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "random.hpp"
#include "report.hpp"
#include "support/cgroup.hpp"
#include "support/node.hpp"
#include "support/unique_fd.hpp"

namespace fuzz {

struct Options {
    std::uint64_t seed = 0;
    std::uint64_t seconds = 10;
    std::size_t processes = 6;
    std::uint64_t steps = 4000;   ///< of a process before another takes its place
    std::uint64_t memory_max = 0; ///< memory.max of the fuzzers' cgroup, bytes; 0: no cgroup
    bool spoil = false;           ///< break the memory once, to see it noticed
};

class Supervisor {
  public:
    explicit Supervisor(const Options& options);
    Supervisor(const Supervisor&) = delete;
    Supervisor& operator=(const Supervisor&) = delete;
    ~Supervisor();

    /// True if all was right; what was not is printed.
    bool run();

  private:
    using Clock = std::chrono::steady_clock;

    struct Mailbox {
        support::UniqueFd read_end, write_end;
    };
    struct Worker {
        pid_t pid = -1;
        std::uint64_t generation = 0;
        bool killed = false;
        std::uint64_t steps = 0; ///< when they were last seen to rise
        Clock::time_point moved;
    };

    void start_bystander();
    void start_worker(std::size_t number);
    void supervise();
    void take_ended();
    void judge_worker(std::size_t number, int status);
    void look_for_stuck();
    void end_all();
    void kill_fuzzer(pid_t pid);
    void check_end();
    void check_out_of_memory();
    void check_cgroup_limit();
    void check_nothing_charged();
    void check_operations();
    void print() const;

    Options options_;
    Report& report_;
    Random random_;
    support::Node node_;
    std::uint64_t total_before_;
    std::uint64_t oom_kills_before_;
    std::uint64_t oom_kills_ = 0; ///< of fuzzing processes, in their cgroup
    std::uint64_t kills_ = 0;
    std::uint64_t over_cgroup_limit_ = 0; ///< times that the limit was met
    std::optional<support::MemoryCgroup> cgroup_;
    std::vector<Mailbox> mailboxes_;
    std::vector<Worker> workers_;
    pid_t bystander_ = -1;
};

} // namespace fuzz

#endif
