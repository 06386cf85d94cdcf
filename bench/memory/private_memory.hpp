// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_MEMORY_PRIVATE_MEMORY_HPP
#define BENCH_MEMORY_PRIVATE_MEMORY_HPP

#include <cstdint>
#include <functional>

namespace bench {

/// Private memory of this process that is present, from /proc/self/smaps, without the mappings
/// for whose first address `left_out` is true. glibc gives back before what it has to spare.
std::uint64_t private_bytes(const std::function<bool(const void*)>& left_out);

} // namespace bench

#endif
