// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Runs a program and keeps what it printed.
#ifndef TESTS_SUPPORT_PROCESS_HPP
#define TESTS_SUPPORT_PROCESS_HPP

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "patience.hpp"
#include "unique_fd.hpp"

namespace support {

/// How a program ended.
struct Finished {
    int status = -1; ///< exit code, or 128 + signal as a shell says it
    std::string out; ///< all of its standard output
    std::string err; ///< all of its standard error
};

/// Who and where the program is.
struct ProcessOptions {
    std::optional<uid_t> uid;             ///< this user and group, no supplementary groups
    std::vector<std::string> environment; ///< NAME=VALUE beside the inherited ones
};

/// A running program, standard input empty. Killed when it goes out of scope.
class Process {
  public:
    /// arguments[0] is the path, or a name that is looked up in PATH. Throws if it cannot start.
    explicit Process(const std::vector<std::string>& arguments, const ProcessOptions& how = {});
    Process(Process&& other) noexcept;
    Process& operator=(Process&&) = delete;
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    ~Process();

    [[nodiscard]] pid_t pid() const { return pid_; }
    void signal(int number) const;

    /// Waits until its standard output holds the text. Throws if it ended or went on for `limit`
    /// without.
    void await_output(const std::string& text, std::chrono::seconds limit = patience) const;

    /// Waits for its end. Throws after `limit`; the program is then killed.
    Finished finish(std::chrono::seconds limit = patience);

  private:
    [[nodiscard]] bool ended(int& wait_status);

    UniqueFd out_;
    UniqueFd err_;
    std::string name_;
    pid_t pid_ = -1;
};

/// Process(arguments, how).finish().
Finished run(const std::vector<std::string>& arguments, const ProcessOptions& how = {});

} // namespace support

#endif
