// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// stl_containers: standard containers that live in an hcamem pool are sent without a copy.
#include "../common/common_options.hpp"
#include "../common/json_file.hpp"
#include "../common/pool_memory.hpp"
#include "../common/program.hpp"
#include "scenes.hpp"

#include <cinttypes>
#include <cstdio>
#include <hcamem/buffer.hpp>
#include <unistd.h>
#include <vector>

namespace {

using namespace samples;

constexpr const char* program_name = "stl_containers";

struct options {
    common_options common;
    std::uint64_t elements = 100000;
};

// False after --help.
bool parse(int argc, char** argv, options& chosen) {
    command_line line(program_name, {"[OPTION...]"},
                      "Sends standard containers through the HCA to this process itself, from the\n"
                      "containers' own storage into that of others, and compares the elements.\n");
    common_options& common = chosen.common;
    common.add_hca(line);
    common.add_path(line);
    line.number('n', "elements", "NUMBER", "elements of the largest vector (default: 100000)",
                chosen.elements, 1, std::uint64_t{1} << 26);
    common.add_events(line);
    common.add_json(line);
    common.add_timeout(line);
    std::vector<std::string> arguments;
    return line.parse(argc, argv, arguments, 0);
}

void require_limits(const hca& device, const options& chosen) {
    device.require_at_most("--elements", chosen.elements,
                           device.largest_message() / sizeof(measurement));
    device.require_at_most("--mtu", mtu_bytes(chosen.common.path.mtu),
                           mtu_bytes(device.active_mtu()));
    device.require_at_most("pieces of a gathered message:", gathered_pieces,
                           static_cast<std::uint64_t>(device.limits().max_sge));
}

int run(int argc, char** argv) {
    options chosen;
    if (!parse(argc, argv, chosen)) {
        return 0;
    }
    json_file json(chosen.common.json);
    const hca device(chosen.common.hca);
    require_limits(device, chosen);
    hcamem::pool pool = open_pool(device);
    hcamem::binding binding = translated_pool_call(
        [&] { return pool.attach(device.protection_domain(), IBV_ACCESS_LOCAL_WRITE); });
    loopback wire(device, chosen.common.completion_mode(), chosen.common.path, gathered_pieces,
                  chosen.common.timeout);

    stage on{pool, binding, wire};
    const std::uint64_t wrong = translated_pool_call([&] {
        std::uint64_t count = show_vectors(on, chosen.elements);
        count += show_nodes(on);
        count += show_pmr(on);
        return count;
    });

    // Asked of a live block; all slabs are registered alike.
    const hcamem::buffer probe = pool.make_buffer(1);
    const char* registration = registration_name(binding.key(probe.data()).path);
    const hcamem_stats stats = pool.stats();
    std::printf("%" PRIu64 " messages, %" PRIu64 " bytes, from and into %u slabs registered by %s "
                "on HCA %s: %s\n",
                wire.messages(), wire.bytes(), stats.slabs, registration, device.name().c_str(),
                wrong == 0 ? "all elements right" : "WRONG ELEMENTS");

    json.add("sample", program_name);
    json.add("hca", device.name());
    json.add("memory", "pool");
    json.add("registration", registration);
    json.add("elements", chosen.elements);
    json.add("messages", wire.messages());
    json.add("bytes", wire.bytes());
    json.add("data_errors", wrong);
    json.add("pid", getpid());
    json.add("address_ranges", mapped_nodes());
    json.write();
    if (wrong > 0) {
        throw failure(exit_code::data, std::to_string(wrong) + " elements arrived changed");
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    return samples::run_program(program_name, [argc, argv] { return run(argc, argv); });
}
