// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamem_rc_pingpong: the ping-pong that RDMA people know, over memory of an hcamem pool.
#include "../common/common_options.hpp"
#include "../common/json_file.hpp"
#include "../common/program.hpp"
#include "pingpong.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <unistd.h>

namespace {

using namespace samples;

constexpr const char* program_name = "hcamem_rc_pingpong";
// A work request describes at most 2^31 bytes, IB specification 9.7.7.
constexpr std::uint64_t largest_message = std::uint64_t{1} << 31;
constexpr std::uint64_t most_iterations = std::uint64_t{1} << 40;

struct options {
    common_options common;
    pingpong_options run;
    std::string host; // empty: this side is the server
};

// False after --help.
bool parse(int argc, char** argv, options& chosen) {
    command_line line(program_name,
                      {"[OPTION...]       wait for a client", "[OPTION...] HOST  connect to HOST"},
                      "Sends messages to and fro over a reliable connection (RC) between two\n"
                      "processes. Both must be given the same --size, --iters, --mtu and --chk.\n");
    common_options& common = chosen.common;
    common.add_connection(line);
    common.add_hca(line);
    line.size('s', "size", "BYTES", "message size, also as 64k or 1m (default: 4096)",
              chosen.run.message_bytes, 1, largest_message);
    common.add_path(line);
    line.number('r', "rx-depth", "NUMBER", "receives posted at a time (default: 500)",
                chosen.run.receive_depth, 1, 1U << 20);
    line.number('n', "iters", "NUMBER", "messages each way (default: 1000)", chosen.run.iterations,
                1, most_iterations);
    common.add_events(line);
    line.flag('c', "chk",
              "check every byte of every message received; filling and\n"
              "checking count in the time",
              chosen.run.check);
    common.add_memory(line);
    common.add_json(line);
    common.add_timeout(line);

    return parse_with_host(line, argc, argv, chosen.host);
}

void require_limits(const hca& device, const options& chosen) {
    device.require_at_most("--size", chosen.run.message_bytes, device.largest_message());
    device.require_at_most("--mtu", mtu_bytes(chosen.common.path.mtu),
                           mtu_bytes(device.active_mtu()));
    // Each receive, and the one send, may complete before the queue is read.
    const auto largest_depth = static_cast<std::uint64_t>(
        std::min(device.limits().max_qp_wr, device.limits().max_cqe - 1));
    device.require_at_most("--rx-depth", chosen.run.receive_depth, largest_depth);
}

void print_address(const char* whose, const qp_address& address) {
    std::array<char, INET6_ADDRSTRLEN> gid{};
    inet_ntop(AF_INET6, address.gid.raw, gid.data(), gid.size());
    std::printf("  %-6s  LID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID %s\n", whose, address.lid,
                address.number, address.first_psn, gid.data());
    // The other side may be waited for next; show what is known so far also through a pipe.
    std::fflush(stdout);
}

struct summary {
    double seconds;
    double megabytes_per_second;
    double usec_per_iteration;
};

summary summarise(const pingpong_options& run, const pingpong_result& result) {
    const double seconds = std::chrono::duration<double>(result.elapsed).count();
    const double both_ways =
        2.0 * static_cast<double>(run.message_bytes) * static_cast<double>(run.iterations);
    return {seconds, both_ways / seconds / 1e6,
            seconds * 1e6 / static_cast<double>(run.iterations)};
}

void report(const options& chosen, const hca& device, const message_memory& memory,
            const pingpong_result& mine, std::uint64_t all_wrong_bytes, json_file& json) {
    const summary total = summarise(chosen.run, mine);
    std::printf("  %-8s %-12s %10s %10s %10s %12s\n", "memory", "registration", "bytes",
                "iterations", "MB/s", "usec/iter");
    std::printf("  %-8s %-12s %10" PRIu64 " %10" PRIu64 " %10.2f %12.2f\n",
                name_of(chosen.common.memory), memory.registration(), chosen.run.message_bytes,
                chosen.run.iterations, total.megabytes_per_second, total.usec_per_iteration);
    if (chosen.run.check && all_wrong_bytes == 0) {
        std::printf("  every byte of %" PRIu64 " messages each way was right\n",
                    chosen.run.iterations);
    }

    json.add("sample", program_name);
    json.add("side", chosen.host.empty() ? "server" : "client");
    json.add("hca", device.name());
    json.add("memory", name_of(chosen.common.memory));
    json.add("registration", memory.registration());
    json.add("bytes", chosen.run.message_bytes);
    json.add("iterations", chosen.run.iterations);
    json.add("checked_bytes",
             chosen.run.check ? chosen.run.message_bytes * chosen.run.iterations : 0);
    json.add("data_errors", all_wrong_bytes);
    json.add("usec_per_iteration", total.usec_per_iteration);
    json.add("pid", getpid());
    json.add("address_ranges", memory.ranges());
    json.write();
}

int run(int argc, char** argv) {
    options chosen;
    if (!parse(argc, argv, chosen)) {
        return 0;
    }
    json_file json(chosen.common.json);
    const hca device(chosen.common.hca);
    require_limits(device, chosen);
    const auto memory = open_memory(chosen.common.memory, device, IBV_ACCESS_LOCAL_WRITE);
    pingpong game(device, *memory, chosen.common.completion_mode(), chosen.run,
                  chosen.host.empty() ? pingpong_side::server : pingpong_side::client);
    std::printf("%s on HCA %s, port %u\n", program_name, device.name().c_str(), device.port());
    print_address("local", game.address());

    peer_link link = chosen.common.open_link(chosen.host);
    try {
        const peer_address peer =
            exchange_addresses(link, chosen.host.empty() ? speaker::server : speaker::client,
                               sample_id::rc_pingpong, {game.address(), {}},
                               {{"--size", chosen.run.message_bytes},
                                {"--iters", chosen.run.iterations},
                                {"--mtu", mtu_bytes(chosen.common.path.mtu)},
                                {"--chk", chosen.run.check ? 1U : 0U}});
        print_address("remote", peer.qp);
        const pingpong_result mine = game.run(link, peer.qp, chosen.common.path);

        link.send(frame_type::result, pack({mine.wrong_bytes}));
        const std::uint64_t theirs = unpack(link.receive(frame_type::result), 1).front();
        report(chosen, device, *memory, mine, mine.wrong_bytes + theirs, json);
        if (mine.wrong_bytes > 0) {
            throw failure(exit_code::data,
                          std::to_string(mine.wrong_bytes) +
                              " bytes received were wrong, the first in iteration " +
                              std::to_string(mine.first_wrong_iteration) + " at byte " +
                              std::to_string(mine.first_wrong_byte));
        }
        if (theirs > 0) {
            throw failure(exit_code::data,
                          std::to_string(theirs) + " bytes received by the peer were wrong");
        }
    } catch (const std::exception& reason) {
        link.give_up(reason.what());
        throw;
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    return samples::run_program(program_name, [argc, argv] { return run(argc, argv); });
}
