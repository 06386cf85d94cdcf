// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_OURS_POOLS_HPP
#define BENCH_OURS_POOLS_HPP

#include <cstdint>

#include <hcamem/pool.hpp>

namespace bench {

/// A pool with the defaults and what the environment says (HCAMEM_SOURCE).
/// Throws std::runtime_error.
hcamem::pool make_pool();

/// The same with other sizes: bytes per slab (0: the default), bytes of all slabs.
hcamem::pool make_pool(std::uint64_t growth, std::uint64_t maximum);

} // namespace bench

#endif
