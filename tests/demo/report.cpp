// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "report.hpp"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace demo {

namespace {

template <class Value>
std::string json_list(const std::vector<Value>& values) {
    std::ostringstream text;
    text.precision(10);
    const char* separator = "[";
    for (const auto& value : values) {
        text << separator << value;
        separator = ", ";
    }
    text << ']';
    return text.str();
}

std::string function_counts(const Pins& pins) {
    std::string text;
    for (const auto& [function, count] : pins.by_function) {
        text += (text.empty() ? "" : ", ") + function + " " + std::to_string(count);
    }
    return text.empty() ? "no function of the families" : text;
}

} // namespace

std::vector<std::string> shortcomings(const Outcome& outcome) {
    std::vector<std::string> lines;
    if (outcome.registration != "dma_buf") {
        lines.push_back("the pool was registered by " + outcome.registration + ", not as dma_buf");
    }
    if (outcome.data_errors != 0) {
        lines.push_back(std::to_string(outcome.data_errors) + " bytes arrived wrong");
    }
    if (outcome.pool.pins.by_anyone != 0) {
        lines.push_back("pages of the pool were pinned: " + function_counts(outcome.pool.pins));
    }
    if (outcome.malloc.pins.by_owner == 0) {
        lines.emplace_back("no pin of malloc memory was seen, so the probes show nothing");
    }
    return lines;
}

void print_table(const Outcome& outcome) {
    std::printf("\nRDMA messages sent from and received into memory that mmap() of a device node "
                "gave\n");
    std::printf("kernel %s, HCA %s, pool registered by %s\n\n", outcome.kernel.c_str(),
                outcome.hca.c_str(), outcome.registration.c_str());
    std::printf("  %13s %10s %16s %18s\n", "message bytes", "iterations", "pool, usec/iter",
                "malloc, usec/iter");
    for (std::size_t i = 0; i < outcome.message_bytes.size(); ++i) {
        std::printf("  %13" PRIu64 " %10" PRIu64 " %16.1f %18.1f\n", outcome.message_bytes[i],
                    outcome.iterations[i], outcome.pool.usec_per_iteration[i],
                    outcome.malloc.usec_per_iteration[i]);
    }
    std::printf("  RDMA write, read, fetch-and-add, compare-and-swap: %" PRIu64 " rounds\n",
                outcome.rdma_rounds);
    std::printf("  wrong bytes, every byte compared: %" PRIu64 "\n\n", outcome.data_errors);
    std::printf("  page-pin calls on that memory, from open to exit (%zu functions probed)\n",
                outcome.probes.size());
    std::printf("    pool   %8" PRIu64 "  %s\n", outcome.pool.pins.by_anyone,
                function_counts(outcome.pool.pins).c_str());
    std::printf("    malloc %8" PRIu64 "  %s\n", outcome.malloc.pins.by_owner,
                function_counts(outcome.malloc.pins).c_str());
    std::printf("  times are of an emulated machine, the filling and checking included\n");
}

void write_json(const Outcome& outcome, const std::string& path) {
    std::ofstream file(path, std::ios::trunc);
    file << "{\n"
         << "  \"kernel\": \"" << outcome.kernel << "\",\n"
         << "  \"hca\": \"" << outcome.hca << "\",\n"
         << "  \"registration\": \"" << outcome.registration << "\",\n"
         << "  \"message_bytes\": " << json_list(outcome.message_bytes) << ",\n"
         << "  \"iterations\": " << json_list(outcome.iterations) << ",\n"
         << "  \"data_errors\": " << outcome.data_errors << ",\n"
         << "  \"page_pin_calls\": {\"pool\": " << outcome.pool.pins.by_anyone
         << ", \"malloc\": " << outcome.malloc.pins.by_owner << "},\n"
         << "  \"usec_per_iteration\": {\n"
         << "    \"pool\": " << json_list(outcome.pool.usec_per_iteration) << ",\n"
         << "    \"malloc\": " << json_list(outcome.malloc.usec_per_iteration) << "\n"
         << "  }\n}\n";
    file.close();
    if (!file) {
        throw std::runtime_error("cannot write " + path);
    }
}

} // namespace demo
