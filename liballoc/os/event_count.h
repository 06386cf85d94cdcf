// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Waiting for "something was freed" at the cost of one load for those who free.
// A futex and not a condition variable: notify() must not take a lock.
//
//   waiter: ticket = prepare(); try again; wait(ticket, deadline) or cancel()
//   freer:  free the block; notify()
//
// Both sides have a full fence between their write and their read, so either the
// waiter's second try sees the block, or the freer sees the waiter.
#ifndef HCAMEM_OS_EVENT_COUNT_H
#define HCAMEM_OS_EVENT_COUNT_H

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hcamem::core {

class event_count {
  public:
    using clock = std::chrono::steady_clock;

    [[nodiscard]] std::uint32_t prepare() noexcept {
        waiters_.fetch_add(1, std::memory_order_seq_cst);
        return epoch_.load(std::memory_order_seq_cst);
    }
    void cancel() noexcept { waiters_.fetch_sub(1, std::memory_order_relaxed); }

    /// Until notify() or the deadline; clock::time_point::max() means for ever. May
    /// return early. Ends what prepare() began.
    void wait(std::uint32_t ticket, clock::time_point deadline) noexcept;

    void notify() noexcept {
#if defined(__SANITIZE_THREAD__) // which knows no fences: a write has the same effect
        const std::uint32_t waiters = waiters_.fetch_add(0, std::memory_order_seq_cst);
#else
        std::atomic_thread_fence(std::memory_order_seq_cst);
        const std::uint32_t waiters = waiters_.load(std::memory_order_relaxed);
#endif
        if (waiters != 0) {
            wake_all();
        }
    }

  private:
    void wake_all() noexcept;

    std::atomic<std::uint32_t> waiters_{0};
    std::atomic<std::uint32_t> epoch_{0};
};

} // namespace hcamem::core

#endif
