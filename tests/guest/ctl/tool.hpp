// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Running hcamemctl and taking what it says apart.
#ifndef TESTS_GUEST_CTL_TOOL_HPP
#define TESTS_GUEST_CTL_TOOL_HPP

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/child.hpp"
#include "support/unique_fd.hpp"

using Json = nlohmann::json;

/// How a program ended, and what it wrote.
struct Outcome {
    int status = -1; ///< exit status, or 128 + signal
    std::string out;
    std::string err;

    /// What it wrote, as one JSON value; throws what is wrong with it.
    [[nodiscard]] Json json() const { return Json::parse(out); }
};

/// Who runs a program, and where.
struct Circumstances {
    support::Identity identity;
    std::function<void()> before; ///< as root, in the new process
};

extern const support::Identity nobody;

/// Path of the tool that was built with this test.
std::string tool_path();

Outcome run(const std::vector<std::string>& command, const Circumstances& circumstances = {});
Outcome hcamemctl(std::vector<std::string> arguments, const Circumstances& circumstances = {});

/// `show --json` with more arguments; throws if it does not exit with 0.
Json show(std::vector<std::string> arguments = {});
/// The regions that a process obtained, as root sees them.
Json regions_of(pid_t pid);
/// How a process uses a node, or dma-bufs (""), as root sees it; throws if not at all.
Json use_of(pid_t pid, const std::string& node);

/// A hcamemctl that runs on beside the test; killed at the end.
class RunningTool {
  public:
    explicit RunningTool(std::vector<std::string> arguments,
                         const Circumstances& circumstances = {});
    RunningTool(const RunningTool&) = delete;
    RunningTool& operator=(const RunningTool&) = delete;
    ~RunningTool();

    /// Next line of what it writes to stdout, and to stderr; throws if none comes.
    std::string line() { return next(out_, out_text_); }
    std::string error_line() { return next(err_, err_text_); }
    /// What it wrote to stdout and was not read yet, once it has ended.
    std::vector<std::string> rest();
    void send(int signal) const;
    /// Whether it has a file open whose path begins so.
    [[nodiscard]] bool has_open(const std::string& path) const;
    /// Waits for its end; exit status, or 128 + signal.
    int wait();

  private:
    static std::string next(const support::UniqueFd& from, std::string& text);

    support::UniqueFd out_;
    support::UniqueFd err_;
    std::string out_text_;
    std::string err_text_;
    pid_t pid_ = -1;
    int status_ = -1;
};

#endif
