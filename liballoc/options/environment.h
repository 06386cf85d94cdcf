// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_OPTIONS_ENVIRONMENT_H
#define HCAMEM_OPTIONS_ENVIRONMENT_H

#include <cstdint>

namespace hcamem::core {

/// The variable's value, nullptr if it is unset or empty, or if the program runs
/// with more rights than its user (AT_SECURE).
const char* environment(const char* name) noexcept;

/// Reads "0", "4096", "64K", "2M", "1G", "1T" (binary units); false if it is not that or
/// does not fit.
bool parse_bytes(const char* text, std::uint64_t& bytes) noexcept;

} // namespace hcamem::core

#endif
