// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "os/fork_hook.h"

#include <atomic>

#include <pthread.h>
#include <unistd.h>

namespace hcamem::core {
namespace {

std::atomic<pid_t> known{getpid()};

void after_fork() noexcept {
    known.store(getpid(), std::memory_order_relaxed);
}

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, after_fork);

} // namespace

pid_t libc_pid() noexcept {
    return known.load(std::memory_order_relaxed);
}

bool made_by_libc() noexcept {
    return known.load(std::memory_order_relaxed) == getpid();
}

} // namespace hcamem::core
