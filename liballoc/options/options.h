// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_OPTIONS_OPTIONS_H
#define HCAMEM_OPTIONS_OPTIONS_H

#include <cstddef>
#include <cstdint>

#include <hcamem.h>

namespace hcamem::core {

/// Bytes of the first published struct hcamem_options: what every caller has.
inline constexpr std::uint32_t first_options_bytes =
    offsetof(hcamem_options, hca) + sizeof(const char*);

/// The defaults without the environment.
hcamem_options default_options() noexcept;

/// The defaults with the environment's changes; warns once of each bad variable.
hcamem_options options_from_environment() noexcept;

/// Reads the caller's structure of whatever version, fills in what it left open,
/// rounds sizes to whole slab units and checks it. 0, or -EINVAL or -E2BIG with a message.
int read_options(const hcamem_options& given, hcamem_options& options) noexcept;

/// See hcamem_options_describe().
int describe_options(const hcamem_options& options, char* text, std::size_t size) noexcept;

} // namespace hcamem::core

#endif
