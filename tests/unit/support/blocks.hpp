// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Many blocks of one size.
#ifndef TESTS_UNIT_SUPPORT_BLOCKS_HPP
#define TESTS_UNIT_SUPPORT_BLOCKS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include <hcamem.h>

namespace unit {

/// Blocks until there is none left, or so many.
std::vector<void*> allocate_all(hcamem_pool* pool, std::size_t bytes,
                                std::size_t at_most = SIZE_MAX);

void free_all(hcamem_pool* pool, const std::vector<void*>& all);

} // namespace unit

#endif
