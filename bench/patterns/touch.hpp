// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_PATTERNS_TOUCH_HPP
#define BENCH_PATTERNS_TOUCH_HPP

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace bench {

inline constexpr std::size_t cache_line = 64;
inline constexpr std::size_t kernel_page = 4096;

/// Writes one byte of a buffer, each time in another cache line of its first page: the same
/// offset in buffers 4096 bytes apart would all fall into one set of the L1 cache, and then
/// the distance between buffers would be measured.
class toucher {
  public:
    /// For buffers of at least `bytes` bytes, a power of two.
    explicit toucher(std::size_t bytes)
        : mask_((std::min(bytes, kernel_page) - 1) & ~(cache_line - 1)) {}

    void operator()(void* buffer) noexcept {
        if (buffer == nullptr) [[unlikely]] {
            std::fputs("bench: an implementation ran out of buffers\n", stderr);
            std::abort();
        }
        static_cast<volatile char*>(buffer)[offset_] = 1;
        offset_ = (offset_ + cache_line) & mask_;
    }

  private:
    std::size_t mask_;
    std::size_t offset_ = 0;
};

} // namespace bench

#endif
