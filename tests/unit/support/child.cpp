// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "support/child.hpp"

#include <cerrno>
#include <csignal>
#include <system_error>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace unit {

std::ostream& operator<<(std::ostream& out, birth how) {
    return out << (how == birth::fork ? "fork" : "clone");
}

int run_in_child(birth how, const std::function<int()>& body) {
    const pid_t child =
        how == birth::fork ? fork() : static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child < 0) {
        throw std::system_error(errno, std::generic_category(), "no child");
    }
    if (child == 0) {
        constexpr unsigned limit_seconds = 180;
        std::signal(SIGALRM, SIG_DFL);
        alarm(limit_seconds);
        _exit(body());
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            throw std::system_error(errno, std::generic_category(), "waitpid");
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace unit
