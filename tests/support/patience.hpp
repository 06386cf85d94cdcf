// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_SUPPORT_PATIENCE_HPP
#define TESTS_SUPPORT_PATIENCE_HPP

#include <chrono>

namespace support {

/// How long what has to come may take before it is called a hang. No measure of speed: it takes
/// milliseconds, and an emulated machine on a busy host may be away for many seconds.
constexpr std::chrono::seconds patience(180);

} // namespace support

#endif
