// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl: who holds how much memory of hcamem, and how much may be held.
#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "commands.hpp"
#include "output.hpp"

namespace {

using ctl::exit_code;

constexpr std::string_view help =
    R"(usage: hcamemctl COMMAND [OPTION...]

  list    the HCAs with a node, what is handed out, and the limits
            --json
  show    who holds how much: regions, users, processes, dma-bufs
            --node NODE | --hca HCA   only this node (hcamem0) or HCA
            --pid PID                 only what this process obtained or uses
            --user USER               only what is charged to this user, and
                                      processes of this user
            --json
  limits  the limits; with NAME=SIZE... (root) sets them
            NAME   max_bytes max_bytes_per_user reserve_bytes low_bytes
                   critical_bytes
            SIZE   bytes, or with K M G T (powers of 1024), or a share of the
                   machine's memory such as 50%
            --force   also values that cannot be meant
            --json
  watch   what happens, line by line until Ctrl-C: memory gets short (low,
          critical), HCAs come and go
            --node NODE | --hca HCA
            --json    an object per line

  --help, --version

Everybody sees list, limits and watch; show tells all to root only, and says
what is missing from its answer.

Exit status: 0 done; 1 failed; 2 wrong arguments; 3 module, node, HCA or user
does not exist; 4 a part of the answer is missing. See hcamemctl(8).
)";

struct command_entry {
    std::string_view name;
    exit_code (*run)(const ctl::command_options&);
    std::vector<std::string_view> options;
};

const std::array<command_entry, 4> commands{{
    {"list", ctl::list, {"--json"}},
    {"show", ctl::show, {"--json", "--node", "--hca", "--pid", "--user"}},
    {"limits", ctl::limits, {"--json", "--force", "NAME=VALUE"}},
    {"watch", ctl::watch, {"--json", "--node", "--hca"}},
}};

exit_code run(const std::vector<std::string>& arguments) {
    if (arguments.empty()) {
        throw ctl::failure(exit_code::usage, "no command given; see 'hcamemctl --help'");
    }
    const std::string& first = arguments[0];
    if (first == "--help" || first == "-h" || first == "help") {
        ctl::print(help);
        return exit_code::success;
    }
    if (first == "--version") {
        ctl::print("hcamemctl " HCAMEM_VERSION "\n");
        return exit_code::success;
    }
    const auto* const command =
        std::find_if(commands.begin(), commands.end(),
                     [&first](const command_entry& one) { return one.name == first; });
    if (command == commands.end()) {
        throw ctl::failure(exit_code::usage,
                           "there is no command '" + first + "'; see 'hcamemctl --help'");
    }
    const ctl::command_options options =
        ctl::parse_options({arguments.begin() + 1, arguments.end()}, command->options);
    if (options.help) {
        ctl::print(help);
        return exit_code::success;
    }
    return command->run(options);
}

} // namespace

int main(int argc, char** argv) {
    try {
        return static_cast<int>(run({argv + std::min(argc, 1), argv + argc}));
    } catch (const ctl::failure& why) {
        ctl::say(why.what());
        return static_cast<int>(why.status());
    } catch (const std::exception& error) {
        ctl::say(error.what());
        return static_cast<int>(exit_code::failed);
    }
}
