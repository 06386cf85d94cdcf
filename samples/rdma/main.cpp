// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamem_rdma: RDMA write, read and atomics on memory of an hcamem pool, each verified.
#include "../common/child_process.hpp"
#include "../common/common_options.hpp"
#include "../common/json_file.hpp"
#include "../common/program.hpp"
#include "sides.hpp"

#include <cinttypes>
#include <cstdio>
#include <functional>
#include <unistd.h>

namespace {

using namespace samples;

constexpr const char* program_name = "hcamem_rdma";
constexpr std::uint64_t largest_memory = std::uint64_t{1} << 30;

struct options {
    common_options common;
    std::uint64_t bytes = 65536;
    std::uint64_t rounds = 100;
    bool self = false;
    std::string host;
};

enum class side { client, server };

// False after --help.
bool parse(int argc, char** argv, options& chosen) {
    command_line line(
        program_name,
        {"[OPTION...]         wait for a client, whose operations reach this side's memory",
         "[OPTION...] HOST    be that client", "[OPTION...] --self  be both"},
        "Does RDMA writes, RDMA reads, fetch-and-add and compare-and-swap at odd offsets and\n"
        "with odd lengths. Both sides verify each: the client what it got, the server what its\n"
        "memory holds. Both must be given the same --size, --iters and --mtu.\n");
    common_options& common = chosen.common;
    line.flag(0, "self", "be server and client: the server is a child process", chosen.self);
    common.add_connection(line);
    common.add_hca(line);
    line.size('s', "size", "BYTES", "the server's memory, also as 64k or 1m (default: 64k)",
              chosen.bytes, smallest_memory, largest_memory);
    common.add_path(line);
    line.number('n', "iters", "NUMBER", "rounds of all operations (default: 100)", chosen.rounds, 1,
                std::uint64_t{1} << 40);
    common.add_events(line);
    common.add_memory(line);
    common.add_json(line);
    common.add_timeout(line);

    return parse_with_host(line, argc, argv, chosen.host, chosen.self);
}

void require_limits(const hca& device, const options& chosen) {
    device.require_at_most("--size", chosen.bytes, device.largest_message());
    device.require_at_most("--mtu", mtu_bytes(chosen.common.path.mtu),
                           mtu_bytes(device.active_mtu()));
    if (device.limits().atomic_cap == IBV_ATOMIC_NONE) {
        throw failure(exit_code::hca, "HCA " + device.name() + " has no atomic operations");
    }
}

void print_table(const options& chosen, const hca& device, const message_memory& memory,
                 const client_totals& totals) {
    constexpr const char* names[operations] = {"write", "read", "fetch-and-add",
                                               "compare-and-swap"};
    std::printf("%s on HCA %s: %s memory, registered by %s\n", program_name, device.name().c_str(),
                name_of(chosen.common.memory), memory.registration());
    std::printf("  %-18s %10s %12s %12s %8s\n", "operation", "count", "bytes", "usec each",
                "wrong");
    for (std::size_t i = 0; i < operations; ++i) {
        const operation_total& total = totals[i];
        const double usec = std::chrono::duration<double, std::micro>(total.time).count();
        std::printf("  %-18s %10" PRIu64 " %12" PRIu64 " %12.2f %8" PRIu64 "\n", names[i],
                    total.count, total.bytes, usec / static_cast<double>(total.count), total.wrong);
    }
}

void write_json(const options& chosen, const hca& device, const message_memory& memory, side which,
                std::uint64_t wrong, json_file& json) {
    json.add("sample", program_name);
    json.add("side", which == side::server ? "server" : "client");
    json.add("hca", device.name());
    json.add("memory", name_of(chosen.common.memory));
    json.add("registration", memory.registration());
    json.add("bytes", chosen.bytes);
    json.add("iterations", chosen.rounds);
    json.add("data_errors", wrong);
    json.add("pid", getpid());
    json.add("address_ranges", memory.ranges());
    json.write();
}

int access_of(side which) {
    // An rkey reaches all blocks of a slab: only the side that is written to gives that right.
    return which == side::client ? IBV_ACCESS_LOCAL_WRITE
                                 : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
}

// One side from the HCA to the result. `open_link` is called once everything is ready for a peer.
void play(const options& chosen, side which, json_file& json,
          const std::function<peer_link()>& open_link) {
    const hca device(chosen.common.hca);
    require_limits(device, chosen);
    const auto memory = open_memory(chosen.common.memory, device, access_of(which));
    const message_buffer bytes = memory->make_buffer(chosen.bytes);
    const message_buffer result = memory->make_buffer(sizeof(std::uint64_t));
    endpoint here(device, *memory, chosen.common.completion_mode(), access_of(which));
    const remote_memory offered{reinterpret_cast<std::uint64_t>(bytes.bytes.data()),
                                bytes.bytes.size(), bytes.rkey};

    peer_link link = open_link();
    try {
        const peer_address peer =
            exchange_addresses(link, which == side::client ? speaker::client : speaker::server,
                               sample_id::rdma, {here.address(), offered},
                               {{"--size", chosen.bytes},
                                {"--iters", chosen.rounds},
                                {"--mtu", mtu_bytes(chosen.common.path.mtu)}});
        here.connect(link, peer.qp, chosen.common.path);

        std::uint64_t wrong = 0;
        if (which == side::server) {
            // The client's count includes what this side reported to it.
            static_cast<void>(run_server(here, chosen.rounds, bytes));
            wrong = unpack(link.receive(frame_type::result), 1).front();
            link.send(frame_type::result);
        } else {
            const auto totals = run_client(here, chosen.rounds, peer.memory, bytes, result);
            for (const auto& total : totals) {
                wrong += total.wrong;
            }
            link.send(frame_type::result, pack({wrong}));
            static_cast<void>(link.receive(frame_type::result));
            print_table(chosen, device, *memory, totals);
        }
        write_json(chosen, device, *memory, which, wrong, json);
        if (wrong > 0) {
            throw failure(exit_code::data,
                          std::to_string(wrong) + " bytes or values were not as expected");
        }
    } catch (const std::exception& reason) {
        link.give_up(reason.what());
        throw;
    }
}

// The child that is the server. What goes wrong here is told to the parent, which prints it.
int play_child(const options& chosen, int descriptor) {
    peer_link link(descriptor, chosen.common.timeout, true);
    json_file no_json("");
    try {
        play(chosen, side::server, no_json, [&link] { return std::move(link); });
        return 0;
    } catch (const failure& reason) {
        link.give_up(reason.what()); // if play() has not got as far as taking it
        return reason.code();
    }
}

int play_both(const options& chosen) {
    const auto [client_end, server_end] = make_descriptor_pair();
    // Before any HCA is opened: each process opens its own.
    const pid_t pid = fork();
    if (pid < 0) {
        throw failure(exit_code::unexpected, with_errno("fork"));
    }
    if (pid == 0) {
        close(client_end);
        return play_child(chosen, server_end);
    }
    close(server_end);
    child_process server(pid);
    json_file json(chosen.common.json);
    peer_link link(client_end, chosen.common.timeout, true);
    play(chosen, side::client, json, [&link] { return std::move(link); });
    server.expect_success("the server");
    return 0;
}

int run(int argc, char** argv) {
    options chosen;
    if (!parse(argc, argv, chosen)) {
        return 0;
    }
    if (chosen.self) {
        return play_both(chosen);
    }
    json_file json(chosen.common.json);
    play(chosen, chosen.host.empty() ? side::server : side::client, json,
         [&chosen] { return chosen.common.open_link(chosen.host); });
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    return samples::run_program(program_name, [argc, argv] { return run(argc, argv); });
}
