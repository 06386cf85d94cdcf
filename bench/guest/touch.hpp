// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_GUEST_TOUCH_HPP
#define BENCH_GUEST_TOUCH_HPP

#include <cstddef>

#include "support/guest.hpp"

namespace bench {

/// Writes one byte of each page, as a program that uses the memory would.
[[gnu::noinline]] inline void touch(std::byte* data, std::size_t bytes) {
    for (std::size_t offset = 0; offset < bytes; offset += support::page_size) {
        *static_cast<volatile std::byte*>(data + offset) = std::byte{1};
    }
}

} // namespace bench

#endif
