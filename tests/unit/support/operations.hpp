// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Sequences of operations on a pool from bytes, checked against what is known of the live
// blocks: for random bytes, and for a fuzzer that chooses them.
#ifndef TESTS_UNIT_SUPPORT_OPERATIONS_HPP
#define TESTS_UNIT_SUPPORT_OPERATIONS_HPP

#include <cstddef>
#include <cstdint>
#include <span>

namespace unit {

/// Carries them out on a pool of its own, of ordinary memory. Ends the process with a message
/// on standard error if the pool breaks a promise.
void run_operations(std::span<const std::uint8_t> bytes);

} // namespace unit

#endif
