// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamem_eager_pool: a message layer with eager buffers out of an hcamem pool (eager.h), measured
// between two or more processes.
#include "../common/child_process.hpp"
#include "../common/common_options.hpp"
#include "../common/json_file.hpp"
#include "../common/pool_memory.hpp"
#include "../common/program.hpp"
#include "benchmark.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <unistd.h>
#include <vector>

namespace {

using namespace samples;

constexpr const char* program_name = "hcamem_eager_pool";
constexpr std::uint64_t largest_message = std::uint64_t{64} << 20;
constexpr unsigned most_ranks = 64;

struct options {
    common_options common;
    benchmark_options run;
    std::uint64_t bytes = 0; // 0: all sizes
    std::uint64_t threshold = 8192;
    eager_options layer{};
    unsigned ranks = 2;
    bool self = false;
    std::string host; // empty: rank 0
};

memory_kind pool_or_malloc(std::string_view option, std::string_view text) {
    const memory_kind kind = parse_memory_kind(option, text);
    if (kind == memory_kind::hugetlb) {
        throw failure(exit_code::usage, std::string(option) + " hugetlb: must be pool or malloc");
    }
    return kind;
}

void add_layer(command_line& line, options& chosen) {
    line.size('t', "threshold", "BYTES", "longest message that is sent eagerly (default: 8k)",
              chosen.threshold, 0, std::uint64_t{1} << 20);
    line.number(0, "credits", "NUMBER", "eager messages under way to each peer (default: 32)",
                chosen.layer.credits, 1, 4096);
    line.number(0, "send-buffers", "NUMBER", "eager buffers that sends have (default: 32)",
                chosen.layer.send_buffers, 1, 1U << 16);
    line.number(0, "park-buffers", "NUMBER",
                "eager buffers for messages that came before their receive\n"
                "(default: 32)",
                chosen.layer.park_buffers, 0, 1U << 16);
    line.value(0, "memory", "KIND",
               "pool: hcamem memory (default); malloc: ordinary memory,\n"
               "registered by address",
               [&chosen](std::string_view option, std::string_view text) {
                   chosen.common.memory = pool_or_malloc(option, text);
               });
    line.flag(0, "heap-messages", "messages lie in the heap: rendezvous copies them",
              chosen.run.heap);
}

// False after --help.
bool parse(int argc, char** argv, options& chosen) {
    command_line line(
        program_name,
        {"[OPTION...]         be rank 0, wait for the others",
         "[OPTION...] HOST    join rank 0 at HOST",
         "[OPTION...] --self  be all ranks, as processes of this machine"},
        "Messages over reliable connections (RC): short ones eagerly through buffers\n"
        "out of an hcamem pool, long ones by RDMA read. Measures latency and rate\n"
        "between pairs of ranks, and the rate of all to all. All ranks must be given\n"
        "the same --ranks, --size, --iters, --mtu, --threshold, --credits and --chk.\n");
    common_options& common = chosen.common;
    chosen.layer.credits = 32;
    chosen.layer.send_buffers = 32;
    chosen.layer.park_buffers = 32;
    line.number('N', "ranks", "NUMBER", "processes that take part (default: 2)", chosen.ranks, 2,
                most_ranks);
    line.flag(0, "self", "be all ranks: the others are child processes", chosen.self);
    common.add_connection(line);
    common.add_hca(line);
    line.size('s', "size", "BYTES",
              "message size, also as 64k or 1m (default: 64 bytes to 1 MiB,\n"
              "one after the other)",
              chosen.bytes, 1, largest_message);
    common.add_path(line);
    line.number('n', "iters", "NUMBER", "messages of each kind (default: 100)",
                chosen.run.iterations, 1, std::uint64_t{1} << 40);
    common.add_events(line);
    line.flag('c', "chk",
              "check every byte of every message received; filling and\n"
              "checking count in the time",
              chosen.run.check);
    add_layer(line, chosen);
    common.add_json(line);
    common.add_timeout(line);

    if (!parse_with_host(line, argc, argv, chosen.host, chosen.self)) {
        return false;
    }
    chosen.layer.threshold = static_cast<std::uint32_t>(chosen.threshold);
    chosen.layer.source = common.memory == memory_kind::pool ? HCAMEM_DEVICE : HCAMEM_MEMORY;
    return true;
}

void require_limits(const hca& device, const options& chosen) {
    const auto& limits = device.limits();
    device.require_at_most("--mtu", mtu_bytes(chosen.common.path.mtu),
                           mtu_bytes(device.active_mtu()));
    device.require_at_most("--size", chosen.bytes, device.largest_message());
    const std::uint64_t depth = eager_send_depth(&chosen.layer);
    if (depth > static_cast<std::uint64_t>(limits.max_qp_wr)) {
        device.require_at_most("--credits", chosen.layer.credits,
                               static_cast<std::uint64_t>(limits.max_qp_wr) -
                                   (depth - chosen.layer.credits));
    }
    device.require_at_most("--ranks", chosen.ranks,
                           static_cast<std::uint64_t>(limits.max_cqe) / (2 * depth) + 1);
}

std::vector<std::size_t> sizes_of(const options& chosen) {
    if (chosen.bytes != 0) {
        return {chosen.bytes};
    }
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = 64; bytes <= std::size_t{1} << 20; bytes *= 4) {
        sizes.push_back(bytes);
    }
    return sizes;
}

struct table {
    std::vector<std::uint64_t> bytes;
    std::vector<double> latency;
    std::vector<double> rate;
    std::vector<double> exchange;
};

// A row as soon as it is measured; only rank 0 prints.
void print_row(const options& chosen, std::size_t bytes, const benchmark_result& row) {
    std::printf("  %10zu %-11s %10" PRIu64 " %14.2f %12.2f %14.2f\n", bytes,
                bytes <= chosen.threshold ? "eager" : "rendezvous", chosen.run.iterations,
                row.latency_usec, row.megabytes_per_second, row.exchange_megabytes_per_second);
    std::fflush(stdout);
}

void print_head(const options& chosen, const hca& device, const transport& layer) {
    std::printf("%s on HCA %s, %u ranks: %s memory, registered by %s\n", program_name,
                device.name().c_str(), chosen.ranks, name_of(chosen.common.memory),
                registration_name(layer.registration()));
    std::printf("  %10s %-11s %10s %14s %12s %14s\n", "bytes", "path", "iterations",
                "latency, usec", "MB/s", "all to all");
    std::fflush(stdout);
}

void print_counts(const eager_counts& counts) {
    std::printf("  rank 0: %" PRIu64 " eager and %" PRIu64 " rendezvous sends, %" PRIu64
                " waits for credits, %" PRIu64 " for buffers, %" PRIu64 " messages parked\n",
                counts.eager_sends, counts.rendezvous_sends, counts.credit_waits,
                counts.buffer_waits, counts.parked);
}

void write_json(const options& chosen, const hca& device, const job& ranks, const transport& layer,
                const benchmark& test, const table& rows, std::uint64_t wrong, json_file& json) {
    const eager_counts& counts = layer.counts();
    json.add("sample", program_name);
    json.add("rank", ranks.rank());
    json.add("ranks", ranks.size());
    json.add("hca", device.name());
    json.add("memory", name_of(chosen.common.memory));
    json.add("registration", registration_name(layer.registration()));
    json.add("iterations", chosen.run.iterations);
    json.add("bytes", rows.bytes);
    json.add("latency_usec", rows.latency);
    json.add("megabytes_per_second", rows.rate);
    json.add("exchange_megabytes_per_second", rows.exchange);
    json.add("checked_messages", test.checked_messages());
    json.add("data_errors", wrong);
    json.add("eager_sends", counts.eager_sends);
    json.add("rendezvous_sends", counts.rendezvous_sends);
    json.add("credit_messages", counts.credit_messages);
    json.add("credit_waits", counts.credit_waits);
    json.add("buffer_waits", counts.buffer_waits);
    json.add("parked", counts.parked);
    json.add("unreplaced", counts.unreplaced);
    json.add("staged", counts.staged);
    json.add("pid", getpid());
    json.add("address_ranges", mapped_nodes());
    json.write();
}

void measure(const options& chosen, const hca& device, transport& layer, job& ranks,
             json_file& json) {
    layer.connect(ranks, chosen.common.path);
    if (ranks.rank() == 0) {
        print_head(chosen, device, layer);
    }
    benchmark test(ranks, layer, chosen.run);
    table rows;
    for (const std::size_t bytes : sizes_of(chosen)) {
        const benchmark_result row = test.run(bytes);
        if (ranks.rank() == 0) {
            print_row(chosen, bytes, row);
        }
        rows.bytes.push_back(bytes);
        rows.latency.push_back(row.latency_usec);
        rows.rate.push_back(row.megabytes_per_second);
        rows.exchange.push_back(row.exchange_megabytes_per_second);
    }
    const std::uint64_t wrong = ranks.sum(test.wrong_bytes());
    write_json(chosen, device, ranks, layer, test, rows, wrong, json);
    if (wrong > 0) {
        throw failure(exit_code::data,
                      std::to_string(wrong) + " bytes received by the ranks were wrong");
    }
    if (ranks.rank() == 0) {
        print_counts(layer.counts());
        if (chosen.run.check) {
            std::printf("  every byte of every message was right\n");
        }
    }
}

// One rank from the HCA to the result. `find_others` is called once everything is ready for them.
void play(const options& chosen, speaker self, json_file& json,
          const std::function<std::vector<peer_link>()>& find_others) {
    const hca device(chosen.common.hca);
    require_limits(device, chosen);
    transport layer(device, chosen.ranks, chosen.layer, chosen.common.completion_mode());
    job ranks(self, find_others(),
              {{"--ranks", chosen.ranks},
               {"--size", chosen.bytes},
               {"--iters", chosen.run.iterations},
               {"--mtu", mtu_bytes(chosen.common.path.mtu)},
               {"--threshold", chosen.threshold},
               {"--credits", chosen.layer.credits},
               {"--chk", chosen.run.check ? 1U : 0U}});
    try {
        measure(chosen, device, layer, ranks, json);
    } catch (const std::exception& reason) {
        ranks.give_up(reason.what());
        throw;
    }
}

// What goes wrong in a child is told to the parent, which prints it.
int play_child(const options& chosen, int descriptor) {
    std::vector<peer_link> links;
    links.emplace_back(descriptor, chosen.common.timeout, true);
    json_file no_json("");
    try {
        play(chosen, speaker::client, no_json, [&links] { return std::move(links); });
        return 0;
    } catch (const failure& reason) {
        if (!links.empty()) { // play() has not got as far as taking it
            links.front().give_up(reason.what());
        }
        return reason.code();
    }
}

int play_all(const options& chosen) {
    std::vector<child_process> children;
    std::vector<peer_link> links;
    for (unsigned rank = 1; rank < chosen.ranks; ++rank) {
        const auto [mine, theirs] = make_descriptor_pair();
        // Before any HCA is opened: each process opens its own.
        const pid_t pid = fork();
        if (pid < 0) {
            throw failure(exit_code::unexpected, with_errno("fork"));
        }
        if (pid == 0) {
            close(mine);
            links.clear(); // the parent's ends, to those before
            return play_child(chosen, theirs);
        }
        close(theirs);
        children.emplace_back(pid);
        links.emplace_back(mine, chosen.common.timeout, true);
    }
    json_file json(chosen.common.json); // not the children's: they would remove it
    play(chosen, speaker::server, json, [&links] { return std::move(links); });
    for (child_process& child : children) {
        child.expect_success("a rank");
    }
    return 0;
}

std::vector<peer_link> find_others(const options& chosen) {
    std::vector<peer_link> links;
    if (!chosen.host.empty()) {
        links.push_back(chosen.common.open_link(chosen.host));
        return links;
    }
    const peer_listener listener(chosen.common.tcp_port);
    while (links.size() + 1 < chosen.ranks) {
        links.push_back(listener.accept(chosen.common.server_wait(), chosen.common.timeout));
    }
    return links;
}

int run(int argc, char** argv) {
    options chosen;
    if (!parse(argc, argv, chosen)) {
        return 0;
    }
    if (chosen.self) {
        return play_all(chosen);
    }
    json_file json(chosen.common.json);
    play(chosen, chosen.host.empty() ? speaker::server : speaker::client, json,
         [&chosen] { return find_others(chosen); });
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    return samples::run_program(program_name, [argc, argv] { return run(argc, argv); });
}
