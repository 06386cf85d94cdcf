// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "process.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

#include "files.hpp"

namespace ctl {

namespace {

/// The kernel's own pids, as the module reports them: PROC_PID_INIT_INO.
constexpr ino_t first_pid_namespace = 0xEFFFFFFC;

bool in_first_pid_namespace() {
    struct stat status {};
    return stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == first_pid_namespace;
}

} // namespace

std::optional<process_stat> parse_stat(std::string_view text) {
    // The name may hold anything, but nothing after it holds a parenthesis.
    const auto open = text.find('(');
    const auto close = text.rfind(')');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
        return std::nullopt;
    }
    process_stat stat;
    stat.command = text.substr(open + 1, close - open - 1);
    std::istringstream fields{std::string(text.substr(close + 1))};
    fields >> stat.state;
    // Fields as proc(5) numbers them; the state is number 3.
    constexpr int threads_field = 20;
    constexpr int start_field = 22;
    std::string field;
    for (int number = 4; number <= start_field && fields >> field; ++number) {
        const auto value = parse_number(field);
        if (number == threads_field && value) {
            stat.threads = *value;
        }
        if (number == start_field && value) {
            const auto ticks = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
            stat.started = *value * (1'000'000'000 / ticks);
            return stat;
        }
    }
    return std::nullopt;
}

std::optional<uid_t> parse_uid(std::string_view text) {
    std::optional<uid_t> uid;
    for_each_line(text, [&uid](std::string_view line) {
        constexpr std::string_view name = "Uid:";
        if (uid || !line.starts_with(name)) {
            return;
        }
        std::istringstream fields{std::string(line.substr(name.size()))};
        uid_t real = 0;
        uid_t effective = 0;
        if (fields >> real >> effective) {
            uid = effective;
        }
    });
    return uid;
}

const char* to_string(creator_state creator) {
    switch (creator) {
    case creator_state::alive:
        return "alive";
    case creator_state::dead:
    case creator_state::reused:
        return "dead";
    case creator_state::unknown:
        break;
    }
    return "unknown";
}

creator_state creator_of(const region_info& region) {
    if (!in_first_pid_namespace()) {
        return creator_state::unknown;
    }
    const file_text file = read_file("/proc/" + std::to_string(region.pid) + "/stat");
    const auto stat = parse_stat(file.text);
    if (!stat) {
        return file.error == ENOENT || file.error == ESRCH ? creator_state::dead
                                                           : creator_state::unknown;
    }
    if (!region.created) {
        return creator_state::unknown;
    }
    // Two processes cannot have had the pid at once: one that was there when
    // the region was obtained is the one that obtained it.
    if (stat->started > *region.created) {
        return creator_state::reused;
    }
    return stat->dead() ? creator_state::dead : creator_state::alive;
}

} // namespace ctl
