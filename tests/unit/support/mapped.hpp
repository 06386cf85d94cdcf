// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_UNIT_SUPPORT_MAPPED_HPP
#define TESTS_UNIT_SUPPORT_MAPPED_HPP

#include <cstddef>
#include <string>

namespace unit {

/// Whether the kernel can read and write a byte there on this process's behalf, asked in a
/// way that does no harm: by /proc/self/maps.
bool is_accessible(const void* address);

/// Mappings of this process that touch the range.
std::size_t mapping_count(const void* begin, std::size_t bytes);

/// Open descriptors of this process.
std::size_t open_descriptors();

} // namespace unit

#endif
