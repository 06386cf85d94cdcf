// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_PATTERNS_SPSC_RING_HPP
#define BENCH_PATTERNS_SPSC_RING_HPP

#include <array>
#include <atomic>
#include <cstddef>

#include <sched.h>

namespace bench {

/// Hands buffers from one thread to one other. Each side keeps a copy of the other's
/// position, so that it reads the shared one only when the ring seems full or empty.
class spsc_ring {
  public:
    static constexpr std::size_t capacity = 512;

    void push(void* buffer) noexcept {
        const std::size_t at = producer_.mine.load(std::memory_order_relaxed);
        if (at - producer_.others == capacity) {
            wait([&] { return at - producer_.others != capacity; }, producer_, consumer_);
        }
        slots_[at % capacity] = buffer;
        producer_.mine.store(at + 1, std::memory_order_release);
    }

    void* pop() noexcept {
        const std::size_t at = consumer_.mine.load(std::memory_order_relaxed);
        if (at == consumer_.others) {
            wait([&] { return at != consumer_.others; }, consumer_, producer_);
        }
        void* const buffer = slots_[at % capacity];
        consumer_.mine.store(at + 1, std::memory_order_release);
        return buffer;
    }

  private:
    struct alignas(128) end {
        std::atomic<std::size_t> mine{0};
        std::size_t others = 0;
    };

    // Yields after a while: the other thread may be waiting for this processor.
    template <class Ready>
    static void wait(Ready ready, end& here, const end& there) noexcept {
        for (int round = 0;; ++round) {
            here.others = there.mine.load(std::memory_order_acquire);
            if (ready()) {
                return;
            }
            if (round < 1000) {
                __builtin_ia32_pause();
            } else {
                sched_yield();
            }
        }
    }

    end producer_;
    end consumer_;
    alignas(128) std::array<void*, capacity> slots_{};
};

} // namespace bench

#endif
