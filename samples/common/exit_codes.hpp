// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What a sample can end with. Each way of ending has its own exit code, so that a script can tell
// them apart without reading the one line on stderr that says what happened.
#ifndef SAMPLES_COMMON_EXIT_CODES_HPP
#define SAMPLES_COMMON_EXIT_CODES_HPP

#include <stdexcept>
#include <string>

namespace samples {

enum class exit_code : int {
    success = 0,
    unexpected = 1,    // a system call failed that has no code of its own
    usage = 2,         // wrong option or value
    hca = 3,           // no such HCA, it may not be opened, port down, value beyond its limits
    memory = 4,        // memory cannot be obtained or registered, node missing or not permitted
    no_connection = 5, // refused, TCP port in use, or nobody came
    mismatch = 6,      // the two sides were started with different options
    peer = 7,          // the peer died, gave up or stopped answering
    work_request = 8,  // a work request completed with an error while the peer was there
    data = 9,          // received bytes differ from what was sent
};

/// For --help.
inline constexpr const char* exit_code_help =
    "Exit codes:\n"
    "  0  done; with --chk every received byte was right\n"
    "  1  unexpected system error\n"
    "  2  wrong option or value\n"
    "  3  HCA: it does not exist, may not be opened, its port is down, or a limit of it\n"
    "  4  memory: cannot be obtained or registered, or the node may not be opened\n"
    "  5  no connection: refused, TCP port in use, or nobody came\n"
    "  6  the two sides were started with different options\n"
    "  7  the peer died, gave up or stopped answering\n"
    "  8  a work request failed while the peer was there\n"
    "  9  received bytes differ from what was sent\n"
    "  128+N  ended by signal N (130 after Ctrl-C); everything was given back\n";

/// Ends the program with `code` after one line on stderr. Thrown by everything in samples/.
class failure : public std::runtime_error {
  public:
    failure(exit_code code, const std::string& line)
        : std::runtime_error(line), code_(static_cast<int>(code)) {}

    [[nodiscard]] int code() const noexcept { return code_; }

  protected:
    failure(int code, const std::string& line) : std::runtime_error(line), code_(code) {}

  private:
    int code_;
};

/// A signal asked the program to end.
class interrupted : public failure {
  public:
    explicit interrupted(int signal_number)
        : failure(128 + signal_number, "interrupted by signal " + std::to_string(signal_number)) {}
};

} // namespace samples

#endif
