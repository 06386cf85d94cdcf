// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl: who holds how much memory of hcamem, and how much may be held.
#include <getopt.h>
#include <pwd.h>

#include <cstdio>
#include <limits>

#include "commands.hpp"
#include "files.hpp"
#include "text.hpp"

namespace {

using ctl::exit_code;

constexpr const char* help =
    R"(usage: hcamemctl list [--json]
       hcamemctl show [--node NODE|HCA] [--pid PID] [--user USER] [--json]
       hcamemctl watch [--json]
       hcamemctl --help | --version

  list    the HCAs with a node, what is handed out, and the limits
  show    who holds how much: regions, users, processes, dma-bufs; root sees all
            --node   only of this node (hcamem0) or HCA
            --pid    only what this process obtained or uses
            --user   only what is charged to this user, and processes of this user
  watch   what happens, line by line until Ctrl-C: memory gets short (low,
          critical), HCAs come and go

Exit status: 0 done; 1 failed; 2 wrong arguments; 3 module, node, HCA or user
does not exist; 4 a part of the answer is missing. See hcamemctl(8).
)";

[[noreturn]] void refuse(const std::string& what) {
    throw ctl::failure(exit_code::usage, what + "; see 'hcamemctl --help'");
}

uid_t uid_of(const char* given) {
    if (const passwd* const entry = getpwnam(given)) {
        return entry->pw_uid;
    }
    const auto number = ctl::parse_number(given);
    if (!number || *number > std::numeric_limits<uid_t>::max()) {
        throw ctl::failure(exit_code::absent, std::string("there is no user '") + given + "'");
    }
    return static_cast<uid_t>(*number);
}

pid_t pid_of(const char* given) {
    const auto number = ctl::parse_number(given);
    if (!number || *number == 0 || *number > std::numeric_limits<pid_t>::max()) {
        refuse(std::string("'") + given + "' is no process id");
    }
    return static_cast<pid_t>(*number);
}

/// What follows the command, which may have the first few of the options.
ctl::command_options parse(int argc, char** argv, bool narrows) {
    const option all[] = {{"json", no_argument, nullptr, 'j'},
                          {narrows ? "node" : nullptr, required_argument, nullptr, 'n'},
                          {"pid", required_argument, nullptr, 'p'},
                          {"user", required_argument, nullptr, 'u'},
                          {}};
    ctl::command_options options;
    for (int found = 0; (found = getopt_long(argc, argv, "", all, nullptr)) != -1;) {
        switch (found) {
        case 'j':
            options.json = true;
            break;
        case 'n':
            options.node = optarg;
            break;
        case 'p':
            options.pid = pid_of(optarg);
            break;
        case 'u':
            options.uid = uid_of(optarg);
            break;
        default: // getopt_long() has said why
            refuse("wrong arguments");
        }
    }
    if (optind < argc) {
        refuse(std::string("'") + argv[optind] + "' is not understood");
    }
    return options;
}

exit_code run(int argc, char** argv) {
    const std::string command = argc > 1 ? argv[1] : "";
    for (int i = 1; i < argc; ++i) {
        if (argv[i] == std::string("--help") || argv[i] == std::string("-h")) {
            ctl::print(help);
            return exit_code::success;
        }
    }
    if (command == "--version") {
        ctl::print("hcamemctl " HCAMEM_VERSION "\n");
        return exit_code::success;
    }
    if (command != "list" && command != "show" && command != "watch") {
        refuse(command.empty() ? "no command given" : "there is no command '" + command + "'");
    }
    argv[1] = argv[0];
    const ctl::command_options options = parse(argc - 1, argv + 1, command == "show");
    return command == "list"   ? ctl::list(options)
           : command == "show" ? ctl::show(options)
                               : ctl::watch(options);
}

} // namespace

int main(int argc, char** argv) {
    try {
        return static_cast<int>(run(argc, argv));
    } catch (const ctl::failure& why) {
        ctl::say(why.what());
        return static_cast<int>(why.status());
    } catch (const std::exception& error) {
        ctl::say(error.what());
        return static_cast<int>(exit_code::failed);
    }
}
