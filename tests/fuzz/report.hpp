// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What all processes of a run share: the order to stop, what went wrong, and what was done.
#ifndef TESTS_FUZZ_REPORT_HPP
#define TESTS_FUZZ_REPORT_HPP

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

namespace fuzz {

constexpr std::size_t most_processes = 32;
constexpr std::size_t most_operations = 64;
constexpr std::size_t most_failures = 8;
constexpr std::size_t history_length = 48;

/// Exit status of a process that found something wrong and reported it.
constexpr int exit_wrong = 3;

/// How an operation ended.
enum class Outcome {
    done,    ///< the kernel did what was asked
    refused, ///< it refused, with an errno that is documented for this
    idle,    ///< there was nothing to do it to
};

/// One call, for the history.
struct Call {
    std::uint64_t step;
    std::array<std::uint64_t, 4> arguments;
    std::uint32_t depth; ///< 0 the process itself, 1 its child, ...
    std::array<char, 20> name;
};

/// One fuzzing process and its descendants. Written by them, read by the supervisor.
struct Slot {
    std::atomic<std::uint64_t> steps;
    std::atomic<std::uint64_t> calls;
    std::array<Call, history_length> history;
};

struct Tally {
    std::atomic<std::uint64_t> done, refused, idle;
};

/// Lives in memory that forked children share and executed programs map again.
class Report {
  public:
    /// The run's one report; nobody but the supervisor makes it.
    static Report& create();
    /// In an executed program: from the descriptor that was inherited.
    static Report& open(int fd);
    [[nodiscard]] static Report& get();
    [[nodiscard]] static int descriptor();

    [[nodiscard]] bool stopping() const { return stop_.load(std::memory_order_relaxed); }
    void stop() { stop_.store(true); }

    /// Keeps the first few texts, and says stop. process: whose history tells more.
    void fail(std::string_view text, std::size_t process = nobody);
    [[nodiscard]] std::size_t failures() const;
    /// The text and the history.
    [[nodiscard]] std::string failure(std::size_t number) const;

    Slot& slot(std::size_t process) { return slots_[process]; }
    void note(std::size_t process, const Call& call);
    /// The last calls of a process and its descendants, a line each.
    [[nodiscard]] std::string history(std::size_t process) const;

    static constexpr std::size_t nobody = most_processes;

    Tally& tally(std::size_t operation) { return tallies_[operation]; }
    std::atomic<std::uint64_t>& bystander_rounds() { return bystander_rounds_; }

  private:
    struct Failure {
        std::atomic<bool> complete;
        std::size_t process;
        std::array<char, 2000> text;
    };

    std::atomic<bool> stop_;
    std::atomic<std::uint64_t> bystander_rounds_;
    std::atomic<std::size_t> failures_;
    std::array<Failure, most_failures> failure_;
    std::array<Slot, most_processes> slots_;
    std::array<Tally, most_operations> tallies_;
};

/// Its arguments as one text.
template <class... Parts>
std::string text(const Parts&... parts) {
    std::ostringstream stream;
    (stream << ... << parts);
    return stream.str();
}

/// A number as 0x...
std::string hex(std::uint64_t number);

} // namespace fuzz

#endif
