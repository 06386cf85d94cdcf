// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Memory from a kernel that refuses when it is told to.
#ifndef TESTS_UNIT_SUPPORT_FAKE_SOURCE_HPP
#define TESTS_UNIT_SUPPORT_FAKE_SOURCE_HPP

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "support/pools.hpp"

namespace unit {

struct fake_limits {
    std::atomic<std::size_t> largest_slab{SIZE_MAX}; // more is refused
    std::atomic<int> error{ENOMEM};                  // with this
    std::atomic<bool> unmaps{false};                 // and the range is then unmapped
    std::atomic<bool> occupies{false};               // or taken by a page of somebody else
    std::atomic<std::size_t> refused{0};             // times

    bool tells_events{false};        // open_events() makes a socket,
    std::atomic<int> events_end{-1}; // whose other end this is, to send hcamem_event by
};

/// A pool whose source obeys the limits, which must outlive it.
pool_ptr make_pool(const hcamem_options& options, fake_limits& limits);

} // namespace unit

#endif
