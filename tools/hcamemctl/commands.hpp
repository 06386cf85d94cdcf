// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the program can do. Each throws failure, or says how it went.
#ifndef HCAMEMCTL_COMMANDS_HPP
#define HCAMEMCTL_COMMANDS_HPP

#include "failure.hpp"
#include "options.hpp"

namespace ctl {

/// Version of the JSON that list, show and limits write; grows when a member
/// changes its meaning or goes, not when one is added.
constexpr int json_version = 1;

exit_code list(const command_options& options);
exit_code show(const command_options& options);
exit_code limits(const command_options& options);
exit_code watch(const command_options& options);

} // namespace ctl

#endif
