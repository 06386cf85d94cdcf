// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "os/event_count.h"

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hcamem::core {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

} // namespace

void event_count::wait(std::uint32_t ticket, clock::time_point deadline) noexcept {
    timespec relative{};
    const timespec* limit = nullptr;
    if (deadline != clock::time_point::max()) {
        const auto left =
            std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - clock::now());
        if (left.count() <= 0) {
            cancel();
            return;
        }
        relative.tv_sec = static_cast<std::time_t>(left.count() / 1'000'000'000);
        relative.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
        limit = &relative;
    }
    // A signal or a changed epoch ends it early, which the caller's loop takes in its stride.
    syscall(SYS_futex, &epoch_, FUTEX_WAIT_PRIVATE, ticket, limit, nullptr, 0);
    cancel();
}

void event_count::wake_all() noexcept {
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    syscall(SYS_futex, &epoch_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace hcamem::core
