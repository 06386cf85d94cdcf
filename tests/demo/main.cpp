// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The demonstration behind `make demo`, run in the guest: messages between two processes through
// memory that the kernel handed out, every byte compared, while probes watch whether a page of it
// is pinned by address. The same with malloc'ed memory shows that the probes work.
//
//   hcamem_demo DIRECTORY_OF_THE_SAMPLES
//
// Writes demo.json to $HCAMEM_RESULTS. Exit code 0 if everything was shown, else 1 and the reasons.
#include <sys/utsname.h>

#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "report.hpp"
#include "sample_pair.hpp"
#include "support/guest.hpp"
#include "support/page_pins.hpp"

namespace {

struct Size {
    std::uint64_t message_bytes;
    std::uint64_t iterations;
};
constexpr std::array<Size, 4> sizes{{{64, 1000}, {4096, 1000}, {65536, 200}, {1 << 20, 50}}};
constexpr std::uint64_t rdma_rounds = 50;

std::string running_kernel() {
    utsname name{};
    uname(&name);
    return name.release;
}

void say(const std::string& line) {
    std::printf("demo: %s\n", line.c_str());
    std::fflush(stdout);
}

// The samples sleep until a completion comes (--events): two that poll would take the guest's two
// processors from the kernel threads that do the work of the HCA.

/// The ping-pongs of all sizes over one kind of memory.
demo::MemoryColumn play_pingpongs(const demo::Place& place, const std::string& memory,
                                  support::PagePins& probes, demo::Outcome& outcome) {
    demo::MemoryColumn column;
    for (const Size& size : sizes) {
        say(std::to_string(size.iterations) + " messages of " + std::to_string(size.message_bytes) +
            " bytes each way, memory " + memory);
        const auto result = demo::run_pair(place, "hcamem_rc_pingpong",
                                           {"--size", std::to_string(size.message_bytes), "--iters",
                                            std::to_string(size.iterations), "--chk", "--events",
                                            "--memory", memory},
                                           probes);
        column.usec_per_iteration.push_back(result.usec_per_iteration);
        column.pins.add(result.pins);
        outcome.data_errors += result.data_errors;
        if (memory == "pool") {
            outcome.hca = result.hca;
            outcome.registration = result.registration;
        }
    }
    return column;
}

void play_rdma(const demo::Place& place, support::PagePins& probes, demo::Outcome& outcome) {
    say("RDMA write, read and atomics, memory pool");
    const auto result = demo::run_pair(
        place, "hcamem_rdma",
        {"--iters", std::to_string(rdma_rounds), "--events", "--memory", "pool"}, probes);
    outcome.pool.pins.add(result.pins);
    outcome.data_errors += result.data_errors;
    outcome.rdma_rounds = rdma_rounds;
}

demo::Outcome play(const std::string& programs) {
    demo::Place place{programs, "/tmp/hcamem_demo"};
    std::filesystem::create_directories(place.scratch);
    support::PagePins probes;
    demo::Outcome outcome;
    outcome.kernel = running_kernel();
    outcome.probes = probes.functions();
    for (const Size& size : sizes) {
        outcome.message_bytes.push_back(size.message_bytes);
        outcome.iterations.push_back(size.iterations);
    }
    outcome.pool = play_pingpongs(place, "pool", probes, outcome);
    play_rdma(place, probes, outcome);
    outcome.malloc = play_pingpongs(place, "malloc", probes, outcome);
    return outcome;
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 2) {
            std::fprintf(stderr, "usage: hcamem_demo DIRECTORY_OF_THE_SAMPLES\n");
            return 2;
        }
        const demo::Outcome outcome = play(argv[1]);
        demo::print_table(outcome);
        demo::write_json(outcome, support::environment("HCAMEM_RESULTS") + "/demo.json");
        const auto missing = demo::shortcomings(outcome);
        for (const auto& line : missing) {
            std::fprintf(stderr, "demo: failed: %s\n", line.c_str());
        }
        return missing.empty() ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "demo: failed: %s\n", error.what());
        return 1;
    }
}
