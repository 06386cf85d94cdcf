// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Options that several samples share, with the letters people know from the ibv_*_pingpong tools.
#ifndef SAMPLES_COMMON_COMMON_OPTIONS_HPP
#define SAMPLES_COMMON_COMMON_OPTIONS_HPP

#include "cli.hpp"
#include "hca.hpp"
#include "message_memory.hpp"
#include "peer_link.hpp"
#include "queue_pair.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace samples {

struct common_options {
    hca_options hca;
    path_options path;
    memory_kind memory = memory_kind::pool;
    std::string json;
    std::uint16_t tcp_port = 18515;
    bool events = false;
    std::chrono::seconds timeout{30};
    std::chrono::seconds wait{0}; // 0: the default of the side

    void add_hca(command_line& line);        // -d -i -g
    void add_path(command_line& line);       // -m -l
    void add_memory(command_line& line);     // --memory
    void add_json(command_line& line);       // --json
    void add_events(command_line& line);     // -e
    void add_connection(command_line& line); // -p --wait
    void add_timeout(command_line& line);    // --timeout

    /// How long a server waits for each client.
    [[nodiscard]] std::chrono::seconds server_wait() const;

    /// Waits for a client if `host` is empty, else connects to it.
    [[nodiscard]] peer_link open_link(const std::string& host) const;

    [[nodiscard]] completion_queue::mode completion_mode() const {
        return events ? completion_queue::mode::events : completion_queue::mode::poll;
    }
};

/// Parses a line whose one argument, the server's host, may be missing, and is not allowed
/// if the line sets `self`: the program is both sides then. False: help was asked for, and
/// given.
bool parse_with_host(command_line& line, int argc, char** argv, std::string& host,
                     const bool& self = false);

} // namespace samples

#endif
