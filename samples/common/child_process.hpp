// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A forked process that does not outlive its owner. In a process that its owner forks later it
// does nothing.
#ifndef SAMPLES_COMMON_CHILD_PROCESS_HPP
#define SAMPLES_COMMON_CHILD_PROCESS_HPP

#include <string_view>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

namespace samples {

class child_process {
  public:
    explicit child_process(pid_t pid) : pid_(pid), owner_(getpid()) {}
    child_process(child_process&& other) noexcept
        : pid_(std::exchange(other.pid_, 0)), owner_(other.owner_) {}
    child_process& operator=(child_process&&) = delete;
    /// Kills it if it has not been waited for.
    ~child_process();

    /// Waits for its end. Throws failure(peer) "`who` did not end well" if its status is not 0.
    void expect_success(std::string_view who);

  private:
    pid_t pid_;
    pid_t owner_;
};

} // namespace samples

#endif
