// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "child_process.hpp"

#include "exit_codes.hpp"

#include <cerrno>
#include <csignal>
#include <string>
#include <sys/wait.h>

namespace samples {

child_process::~child_process() {
    if (pid_ > 0 && owner_ == getpid()) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
}

void child_process::expect_success(std::string_view who) {
    int status = 0;
    pid_t ended = 0;
    do {
        ended = waitpid(pid_, &status, 0);
    } while (ended < 0 && errno == EINTR);
    pid_ = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        throw failure(exit_code::peer, std::string(who) + " did not end well");
    }
}

} // namespace samples
