// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What zeroing memory costs: pages that the kernel cleared, times the cost of one.
#ifndef BENCH_GUEST_ZEROING_HPP
#define BENCH_GUEST_ZEROING_HPP

#include <cstdint>
#include <memory>
#include <string>

#include "probes/call_count.hpp"
#include "probes/clock.hpp"

namespace bench {

/// The function by which the kernel clears a page of 4 KiB on this processor
/// (arch/x86/include/asm/page_64.h).
std::string clear_page_function();

/// What the loop of that function takes in user space, on pages that are present: median.
std::int64_t clear_page_cost(const ticker& clock);

} // namespace bench

#endif
