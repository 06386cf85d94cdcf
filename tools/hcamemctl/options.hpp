// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEMCTL_OPTIONS_HPP
#define HCAMEMCTL_OPTIONS_HPP

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ctl {

/// What follows a command. Each command accepts some of it.
struct command_options {
    bool help = false;
    bool json = false;
    bool force = false;
    std::optional<std::string> node; ///< a node's name
    std::optional<std::string> hca;
    std::optional<pid_t> pid;
    std::optional<uid_t> uid;
    std::vector<std::string> settings; ///< NAME=VALUE
};

/// Throws failure for what is not in accepted, which holds option names such as
/// "--node" and, if settings may be given, "NAME=VALUE".
command_options parse_options(const std::vector<std::string>& arguments,
                              const std::vector<std::string_view>& accepted);

} // namespace ctl

#endif
