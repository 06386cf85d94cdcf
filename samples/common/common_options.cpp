// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "common_options.hpp"

#include <vector>

#include "exit_codes.hpp"

namespace samples {
namespace {

constexpr std::chrono::seconds default_server_wait(600);
constexpr std::chrono::seconds default_client_wait(5);
constexpr std::uint64_t longest_wait = 86400;

command_line::handler seconds_into(std::chrono::seconds& target) {
    return [&target](std::string_view option, std::string_view text) {
        target = std::chrono::seconds(parse_number(option, text, 1, longest_wait));
    };
}

} // namespace

void common_options::add_hca(command_line& line) {
    line.text('d', "ib-dev", "DEV", "use HCA DEV (default: the first one found)", hca.name);
    line.number('i', "ib-port", "PORT", "use port PORT of the HCA (default: 1)", hca.port, 1, 255);
    line.value('g', "gid-idx", "INDEX",
               "local GID index (default: on Ethernet an IPv4 RoCE v2 one,\n"
               "else on InfiniBand none)",
               [this](std::string_view option, std::string_view text) {
                   hca.gid_index = static_cast<int>(parse_number(option, text, 0, 255));
               });
}

void common_options::add_path(command_line& line) {
    line.value('m', "mtu", "BYTES", "path MTU: 256, 512, 1024, 2048 or 4096 (default: 1024)",
               [this](std::string_view option, std::string_view text) {
                   const auto mtu = mtu_from_bytes(parse_number(option, text, 256, 4096));
                   if (!mtu) {
                       throw failure(exit_code::usage,
                                     std::string(option) + " " + std::string(text) +
                                         ": must be 256, 512, 1024, 2048 or 4096");
                   }
                   path.mtu = *mtu;
               });
    line.number('l', "sl", "SL", "service level (default: 0)", path.service_level, 0, 15);
}

void common_options::add_memory(command_line& line) {
    line.value(0, "memory", "KIND",
               "pool: hcamem memory (default); malloc: heap; hugetlb: huge pages",
               [this](std::string_view option, std::string_view text) {
                   memory = parse_memory_kind(option, text);
               });
}

void common_options::add_json(command_line& line) {
    line.text(0, "json", "FILE", "write the result to FILE as one JSON object", json);
}

void common_options::add_events(command_line& line) {
    line.flag('e', "events", "sleep until a completion comes (default: poll)", events);
}

void common_options::add_connection(command_line& line) {
    line.number('p', "port", "PORT", "TCP port to listen on or connect to (default: 18515)",
                tcp_port, 1, 65535);
    line.value(0, "wait", "SECONDS",
               "how long a server waits for its client (default: 600), or a\n"
               "client retries a server that refuses (default: 5)",
               seconds_into(wait));
}

void common_options::add_timeout(command_line& line) {
    line.value(0, "timeout", "SECONDS",
               "give up when nothing comes for so long during the run\n"
               "(default: 30)",
               seconds_into(timeout));
}

std::chrono::seconds common_options::server_wait() const {
    return wait.count() > 0 ? wait : default_server_wait;
}

peer_link common_options::open_link(const std::string& host) const {
    if (host.empty()) {
        return accept_peer(tcp_port, server_wait(), timeout);
    }
    return connect_peer(host, tcp_port, wait.count() > 0 ? wait : default_client_wait, timeout);
}

bool parse_with_host(command_line& line, int argc, char** argv, std::string& host,
                     const bool& self) {
    std::vector<std::string> arguments;
    if (!line.parse(argc, argv, arguments, 1)) {
        return false;
    }
    if (!arguments.empty()) {
        host = arguments.front();
    }
    if (self && !host.empty()) {
        throw failure(exit_code::usage, "--self: takes no host");
    }
    return true;
}

} // namespace samples
