// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the supervisor says in the end, to people and to programs.
#include <fstream>
#include <iostream>

#include "operations.hpp"
#include "supervisor.hpp"

namespace fuzz {

namespace {

/// As a string of JSON.
std::string quoted(const std::string& text) {
    std::ostringstream out;
    out << '"';
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out << '\\' << c;
        } else if (c == '\n') {
            out << "\\n";
        } else if (static_cast<unsigned char>(c) >= 0x20) {
            out << c;
        }
    }
    out << '"';
    return out.str();
}

} // namespace

void Supervisor::print() const {
    std::uint64_t done = 0;
    std::uint64_t refused = 0;
    for (std::size_t i = 0; i < operations().size(); ++i) {
        done += report_.tally(i).done;
        refused += report_.tally(i).refused;
    }
    std::uint64_t processes = 0;
    for (const Worker& worker : workers_) {
        processes += worker.generation;
    }
    std::cout << "seed " << options_.seed << ": " << done << " operations done, " << refused
              << " refused, by " << processes << " processes, " << kills_ << " of them killed, "
              << oom_kills_ << " kills for the cgroup's limit, " << report_.bystander_rounds()
              << " rounds of the bystander\n";
    for (std::size_t i = 0; i < report_.failures(); ++i) {
        std::cout << "FAILED: " << report_.failure(i) << '\n';
    }
    if (report_.failures() != 0) {
        std::cout << "again: hcamem_fuzz --seed " << options_.seed << " --processes "
                  << options_.processes << " --steps " << options_.steps << " --memlock "
                  << options_.memlock << " --memory-max " << options_.memory_max << '\n';
    }
    std::cout << std::flush;
}

void Supervisor::write_json() const {
    std::ofstream out(options_.json);
    out << "{\n  \"seed\": " << options_.seed << ",\n  \"seconds\": " << options_.seconds
        << ",\n  \"processes\": " << options_.processes << ",\n  \"uid\": " << options_.uid
        << ",\n  \"memory_max\": " << options_.memory_max << ",\n  \"kills\": " << kills_
        << ",\n  \"oom_kills\": " << oom_kills_
        << ",\n  \"bystander_rounds\": " << report_.bystander_rounds() << ",\n  \"operations\": {";
    for (std::size_t i = 0; i < operations().size(); ++i) {
        const Tally& tally = report_.tally(i);
        out << (i == 0 ? "\n" : ",\n") << "    " << quoted(operations()[i].name)
            << ": {\"done\": " << tally.done << ", \"refused\": " << tally.refused
            << ", \"idle\": " << tally.idle << "}";
    }
    out << "\n  },\n  \"failures\": [";
    for (std::size_t i = 0; i < report_.failures(); ++i) {
        out << (i == 0 ? "\n    " : ",\n    ") << quoted(report_.failure(i));
    }
    out << "\n  ]\n}\n";
    if (!out.flush()) {
        std::cerr << "hcamem_fuzz: cannot write " << options_.json << '\n';
    }
}

} // namespace fuzz
