// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the program can do. Each throws failure, or says how it went.
#ifndef HCAMEMCTL_COMMANDS_HPP
#define HCAMEMCTL_COMMANDS_HPP

#include <sys/types.h>

#include <optional>
#include <string>

#include "failure.hpp"

namespace ctl {

struct command_options {
    bool json = false;
    // Of show only.
    std::optional<std::string> node; ///< as given: name or path of a node, or an HCA
    std::optional<pid_t> pid;
    std::optional<uid_t> uid;
};

exit_code list(const command_options& options);
exit_code show(const command_options& options);
exit_code watch(const command_options& options);

} // namespace ctl

#endif
