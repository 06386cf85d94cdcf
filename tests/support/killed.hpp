// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_SUPPORT_KILLED_HPP
#define TESTS_SUPPORT_KILLED_HPP

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

#include "child.hpp"

namespace support {

/// Waits for a child that kill_now() was called for. A failure says how it ended instead.
inline testing::AssertionResult was_killed(Child& child) {
    const pid_t pid = child.pid();
    const int status = child.wait();
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
        return testing::AssertionSuccess();
    }
    auto failure = testing::AssertionFailure() << "child " << pid << " had ended before: ";
    return WIFSIGNALED(status) ? failure << "signal " << WTERMSIG(status)
                               : failure << "exit status " << WEXITSTATUS(status);
}

} // namespace support

#endif
