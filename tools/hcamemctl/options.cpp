// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "options.hpp"

#include <algorithm>
#include <limits>

#include "driver.hpp"
#include "failure.hpp"
#include "files.hpp"
#include "users.hpp"

namespace ctl {

namespace {

[[noreturn]] void refuse(const std::string& what) {
    throw failure(exit_code::usage, what + "; see 'hcamemctl --help'");
}

void set_flag(command_options& options, std::string_view name) {
    bool& flag = name == "--json" ? options.json : name == "--force" ? options.force : options.help;
    flag = true;
}

void set_value(command_options& options, std::string_view name, const std::string& value) {
    if (value.empty()) {
        refuse(std::string(name) + " needs a value");
    }
    if (name == "--node") {
        options.node = node_name(value);
    } else if (name == "--hca") {
        options.hca = value;
    } else if (name == "--user") {
        options.uid = user_names::uid_of(value);
    } else {
        const auto pid = parse_number(value);
        if (!pid || *pid == 0 || *pid > std::numeric_limits<pid_t>::max()) {
            refuse("--pid: '" + value + "' is no process id");
        }
        options.pid = static_cast<pid_t>(*pid);
    }
}

bool is_flag(std::string_view name) {
    return name == "--json" || name == "--force" || name == "--help";
}

} // namespace

command_options parse_options(const std::vector<std::string>& arguments,
                              const std::vector<std::string_view>& accepted) {
    const auto accepts = [&accepted](std::string_view name) {
        return name == "--help" ||
               std::find(accepted.begin(), accepted.end(), name) != accepted.end();
    };
    command_options options;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i] == "-h" ? "--help" : arguments[i];
        const auto equals = argument.find('=');
        const std::string name = argument.substr(0, equals);
        if (!argument.starts_with('-')) {
            if (!accepts("NAME=VALUE") || equals == std::string::npos) {
                refuse("'" + argument + "' is not understood");
            }
            options.settings.push_back(argument);
        } else if (!accepts(name)) {
            refuse("there is no option '" + name + "' here");
        } else if (is_flag(name)) {
            if (equals != std::string::npos) {
                refuse(name + " takes no value");
            }
            set_flag(options, name);
        } else if (equals != std::string::npos) {
            set_value(options, name, argument.substr(equals + 1));
        } else if (++i < arguments.size()) {
            set_value(options, name, arguments[i]);
        } else {
            refuse(name + " needs a value");
        }
    }
    if (options.node && options.hca) {
        refuse("--node and --hca name the same thing: give one of them");
    }
    return options;
}

} // namespace ctl
