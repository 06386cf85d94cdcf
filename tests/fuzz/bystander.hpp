// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The innocent process: what others do must neither harm nor hinder it.
#ifndef TESTS_FUZZ_BYSTANDER_HPP
#define TESTS_FUZZ_BYSTANDER_HPP

#include <cstdint>

namespace fuzz {

/// RLIMIT_MEMLOCK that it needs.
constexpr std::uint64_t bystander_memlock = std::uint64_t{8} << 20;

/// Obtains, fills, exports, verifies and releases memory within its limits, counting its rounds in
/// the report, until the report says stop. Every refusal and every wrong byte is a failure.
[[noreturn]] void run_bystander();

} // namespace fuzz

#endif
