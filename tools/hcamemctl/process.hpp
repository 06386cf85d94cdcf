// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// One process: who it is, and whether it is still the one that was meant.
#ifndef HCAMEMCTL_PROCESS_HPP
#define HCAMEMCTL_PROCESS_HPP

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "regions.hpp"

namespace ctl {

/// From /proc/PID/stat.
struct process_stat {
    char state = '?';
    std::uint64_t threads = 0;
    std::uint64_t started = 0; ///< nanoseconds after boot, cut off to clock ticks
    std::string command;       ///< any bytes

    /// A dead main thread may still have living company.
    [[nodiscard]] bool dead() const {
        return (state == 'Z' || state == 'X' || state == 'x') && threads <= 1;
    }
};
std::optional<process_stat> parse_stat(std::string_view text);

/// Effective uid, from /proc/PID/status.
std::optional<uid_t> parse_uid(std::string_view text);

/// What became of the process that obtained a region.
enum class creator_state {
    alive,
    dead,
    reused,  ///< dead, and another process has its pid
    unknown, ///< it cannot be told whether the process with its pid is the one
};
const char* to_string(creator_state creator);

/// Looks at /proc; this process must be in the machine's first pid namespace.
creator_state creator_of(const region_info& region);

} // namespace ctl

#endif
