// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Time, or instructions: in a guest whose clock counts them, the TSC has one tick for each.
#ifndef BENCH_GUEST_CLOCK_HPP
#define BENCH_GUEST_CLOCK_HPP

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <time.h>
#include <x86intrin.h>

namespace bench {

/// What now() counts. BENCH_UNIT tells which kind of guest this is; anything but
/// "instructions" is one with a clock.
inline bool counts_instructions() {
    const char* const unit = std::getenv("BENCH_UNIT");
    return unit != nullptr && std::string_view(unit) == "instructions";
}

class ticker {
  public:
    /// Instructions or nanoseconds.
    [[nodiscard]] std::int64_t now() const {
        if (instructions_) {
            return static_cast<std::int64_t>(__rdtsc());
        }
        timespec time{};
        clock_gettime(CLOCK_MONOTONIC_RAW, &time);
        return time.tv_sec * 1'000'000'000 + time.tv_nsec;
    }

    /// What the call takes.
    template <class Call>
    [[nodiscard]] std::int64_t around(Call&& call) const {
        const std::int64_t start = now();
        call();
        return now() - start;
    }

  private:
    bool instructions_ = counts_instructions();
};

} // namespace bench

#endif
