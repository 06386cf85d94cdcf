// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The frame of every sample: signals become exceptions at the next wait, so that destructors run
// and nothing stays behind, and every failure becomes one line on stderr and its exit code.
#ifndef SAMPLES_COMMON_PROGRAM_HPP
#define SAMPLES_COMMON_PROGRAM_HPP

#include "exit_codes.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace samples {

/// Runs `body`. Returns its value, or the exit code of the failure it threw after printing
/// "name: reason" as one line on stderr. Installs handlers for SIGINT, SIGTERM and SIGHUP.
[[nodiscard]] int run_program(std::string_view name, const std::function<int()>& body);

/// Throws `interrupted` once a signal has asked the program to end. Every loop that waits calls it.
void throw_if_interrupted();

/// "what: text of errno", with the errno of now or the one given.
[[nodiscard]] std::string with_errno(std::string_view what);
[[nodiscard]] std::string with_errno(std::string_view what, int error);

} // namespace samples

#endif
