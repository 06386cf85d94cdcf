// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "sample_pair.hpp"

#include <algorithm>
#include <stdexcept>

#include "support/json.hpp"
#include "support/process.hpp"

namespace demo {

namespace {

std::vector<std::string> command(const Place& place, const std::string& program,
                                 const std::vector<std::string>& options, const std::string& json) {
    std::vector<std::string> words{place.programs + "/" + program};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--json", json});
    return words;
}

void require_success(const support::Finished& side, const std::string& name) {
    if (side.status != 0) {
        throw std::runtime_error(name + " ended with " + std::to_string(side.status) + ": " +
                                 side.err.substr(0, side.err.find('\n')));
    }
}

std::vector<support::AddressRange> ranges_of(const support::Json& side) {
    std::vector<support::AddressRange> ranges;
    for (const auto& range : side["address_ranges"].list()) {
        ranges.push_back(
            {range.list().at(0).unsigned_number(), range.list().at(1).unsigned_number()});
    }
    if (ranges.empty()) {
        throw std::runtime_error("the sample does not say where its memory was");
    }
    return ranges;
}

Pins pins_on(const support::Json& side, const std::vector<support::PinCall>& calls) {
    const auto on_memory = support::touching(calls, ranges_of(side));
    const auto pid = static_cast<pid_t>(side["pid"].unsigned_number());
    Pins pins;
    pins.by_anyone = on_memory.size();
    pins.by_owner = static_cast<std::uint64_t>(
        std::count_if(on_memory.begin(), on_memory.end(),
                      [pid](const support::PinCall& call) { return call.thread == pid; }));
    pins.by_function = support::by_function(on_memory);
    return pins;
}

} // namespace

void Pins::add(const Pins& other) {
    by_anyone += other.by_anyone;
    by_owner += other.by_owner;
    for (const auto& [function, count] : other.by_function) {
        by_function[function] += count;
    }
}

PairResult run_pair(const Place& place, const std::string& program,
                    const std::vector<std::string>& options, support::PagePins& probes) {
    const std::string server_json = place.scratch + "/server.json";
    const std::string client_json = place.scratch + "/client.json";
    probes.clear();
    support::Process server(command(place, program, options, server_json));
    auto client_words = command(place, program, options, client_json);
    client_words.emplace_back("127.0.0.1"); // tries again until the server listens
    const support::Finished client = support::run(client_words);
    require_success(client, program + " (client)");
    require_success(server.finish(), program + " (server)");
    const auto calls = probes.calls();

    const auto server_result = support::Json::read_file(server_json);
    const auto client_result = support::Json::read_file(client_json);
    PairResult result;
    result.hca = client_result["hca"].string();
    result.registration = client_result["registration"].string();
    if (server_result["registration"].string() != result.registration) {
        throw std::runtime_error(program + ": the two sides registered in different ways");
    }
    result.data_errors = client_result["data_errors"].unsigned_number();
    if (client_result.has("usec_per_iteration")) {
        result.usec_per_iteration = client_result["usec_per_iteration"].number();
    }
    result.pins.add(pins_on(server_result, calls));
    result.pins.add(pins_on(client_result, calls));
    return result;
}

} // namespace demo
