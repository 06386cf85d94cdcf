// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// How much of the slabs can be used, and what is needed beside them. Shares of slab bytes.
#ifndef BENCH_MEMORY_FIGURES_HPP
#define BENCH_MEMORY_FIGURES_HPP

#include <cstdint>
#include <vector>

#include "report/goal.hpp"

namespace bench {

/// The mixed pattern's live buffers against the slabs that hold them: after they were
/// allocated, and after so many were replaced.
std::vector<figure> measure_fill(std::uint64_t replacements);

/// Private memory of this process outside the slabs that buffers of 4 KiB bring with them.
std::vector<figure> measure_bookkeeping();

/// Buffers of 4 KiB that come out of a pool of one slab.
std::vector<figure> measure_usable();

/// Both of buffers from a pool of one size.
std::vector<figure> measure_fixed();

} // namespace bench

#endif
