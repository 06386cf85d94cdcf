// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "registration/measure.hpp"

#include <array>
#include <fstream>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/zeroing.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "touch.hpp"

namespace bench {
namespace {

/// The child waits until fork() was timed: on one processor it might run in the middle of it.
std::int64_t time_fork(const ticker& clock) {
    std::array<int, 2> ends{};
    support::must(pipe2(ends.data(), O_CLOEXEC), "pipe2");
    support::UniqueFd waits(ends[0]);
    support::UniqueFd holds(ends[1]);
    pid_t child = -1;
    const std::int64_t taken = clock.around([&] {
        child = fork();
        if (child == 0) {
            close(ends[1]);
            char nothing = 0;
            _exit(static_cast<int>(read(ends[0], &nothing, 1)));
        }
    });
    support::must(child, "fork");
    holds.reset();
    int status = 0;
    support::must(waitpid(child, &status, 0), "waitpid");
    return taken;
}

std::uint64_t page_table_bytes() {
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("VmPTE:")) {
            return std::stoull(line.substr(line.find(':') + 1)) * support::KiB;
        }
    }
    throw std::runtime_error("/proc/self/status has no VmPTE");
}

std::uint64_t page_faults() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return static_cast<std::uint64_t>(usage.ru_minflt + usage.ru_majflt);
}

} // namespace

steps measure_steps(candidate& who, std::size_t bytes, const ticker& clock,
                    const times& how_often) {
    steps taken;
    for (int round = -how_often.warm_ups; round < how_often.repetitions; ++round) {
        std::byte* data = nullptr;
        const std::int64_t obtain = clock.around([&] {
            data = who.obtain(bytes);
            touch(data, bytes);
        });
        const std::int64_t touching = clock.around([&] { touch(data, bytes); });
        const std::int64_t enroll = clock.around([&] { who.enroll(); });
        const std::int64_t withdraw = clock.around([&] { who.withdraw(); });
        const std::int64_t release = clock.around([&] { who.release(); });
        if (round >= 0) {
            taken.obtain.push_back(obtain - touching);
            taken.enroll.push_back(enroll);
            taken.withdraw.push_back(withdraw);
            taken.release.push_back(release);
        }
    }
    return taken;
}

std::vector<std::int64_t> measure_fork(candidate& who, std::size_t bytes, const ticker& clock,
                                       int repetitions) {
    touch(who.obtain(bytes), bytes);
    who.enroll();
    std::vector<std::int64_t> samples = measure_bare_fork(clock, repetitions);
    who.withdraw();
    who.release();
    return samples;
}

std::vector<std::int64_t> measure_bare_fork(const ticker& clock, int repetitions) {
    std::vector<std::int64_t> samples;
    samples.reserve(static_cast<std::size_t>(repetitions));
    for (int times = 0; times < repetitions; ++times) {
        samples.push_back(time_fork(clock));
    }
    return samples;
}

probes::probes() : cleared_(clear_page_function()) {}

counts probes::measure(candidate& who, std::size_t bytes) {
    pins_.clear();
    registrations_.clear();
    counts seen;
    const std::uint64_t tables = page_table_bytes();
    const std::uint64_t cleared = cleared_.value();
    const std::uint64_t faults = page_faults();
    std::byte* const data = who.obtain(bytes);
    touch(data, bytes);
    seen.faults = page_faults() - faults;
    seen.cleared_pages = cleared_.value() - cleared;
    seen.page_table_bytes = page_table_bytes() - tables;
    who.enroll();
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    const std::vector<support::AddressRange> range{{begin, begin + bytes}};
    for (const support::PinCall& call : support::touching(pins_.calls(), range)) {
        // The outermost of the calls that one pin goes through.
        if (call.function == "pin_user_pages_fast") {
            seen.pinned_pages += (call.pages.end - call.pages.begin) / support::page_size;
        }
    }
    const registrations::seen registered = registrations_.value();
    seen.dma_segments = registered.segments;
    seen.table_ticks = registered.table_ticks;
    who.withdraw();
    who.release();
    return seen;
}

} // namespace bench
