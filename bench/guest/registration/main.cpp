// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The part of `make bench-registration` that runs in the guest; see docs/performance.md. Writes
// a line of JSON per measurement, of which bench/guest/report makes tables and pictures.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "candidates/candidate.hpp"
#include "probes/clock.hpp"
#include "probes/zeroing.hpp"
#include "record.hpp"
#include "registration/measure.hpp"
#include "support/guest.hpp"
#include "support/rdma.hpp"

namespace {

using namespace bench;

struct plan {
    std::size_t bytes;
    int warm_ups; // pay for what the kernel keeps afterwards, such as slab pages
    int repetitions;
    int forks;
};

std::vector<plan> chosen_sizes(bool quick) {
    if (quick) {
        return {{64 * support::KiB, 1, 2, 1}, {64 * support::MiB, 1, 2, 1}};
    }
    return {{64 * support::KiB, 2, 15, 5},
            {support::MiB, 2, 15, 5},
            {64 * support::MiB, 1, 5, 3},
            {support::GiB, 0, 1, 1}};
}

class prepared {
  public:
    prepared(candidate& who, std::size_t bytes) : who_(who) { who.prepare(bytes); }
    prepared(const prepared&) = delete;
    prepared& operator=(const prepared&) = delete;
    prepared(prepared&&) = delete;
    prepared& operator=(prepared&&) = delete;
    ~prepared() { who_.finish(); }

  private:
    candidate& who_;
};

void write_counts(recorder& out, candidate& who, std::size_t bytes, probes& all) {
    const prepared ready(who, bytes);
    const counts seen = all.measure(who, bytes);
    const auto add = [&](const char* what, std::uint64_t value) {
        out.add({{"candidate", who.name()}, {"what", what}}, bytes,
                {static_cast<std::int64_t>(value)});
    };
    add("page faults", seen.faults);
    add("cleared pages", seen.cleared_pages);
    add("page-table bytes", seen.page_table_bytes);
    add("pinned pages", seen.pinned_pages);
    add("dma segments", seen.dma_segments);
    add("soft-RoCE's table", seen.table_ticks);
}

void write_steps(recorder& out, candidate& who, const plan& size, const ticker& clock) {
    const prepared ready(who, size.bytes);
    const steps taken = measure_steps(who, size.bytes, clock, {size.warm_ups, size.repetitions});
    const auto add = [&](const char* what, const std::vector<std::int64_t>& samples) {
        out.add({{"candidate", who.name()}, {"what", what}}, size.bytes, samples);
    };
    add("obtain", taken.obtain);
    add("register", taken.enroll);
    add("deregister", taken.withdraw);
    add("release", taken.release);
    // Apart: after a fork this process has page faults on memory of its own.
    add("fork", measure_fork(who, size.bytes, clock, size.forks));
}

int run(recorder& out, bool quick) {
    const support::Context context("rxe0");
    const support::Pd pd(context);
    const ticker clock;
    const auto sizes = chosen_sizes(quick);
    const candidates all = make_candidates(pd, "rxe0");
    out.begin("registration", quick);

    // First, while the machine's memory is as it was after boot. What it counts does not depend on
    // the clock, but for one thing, which is in the TSC's ticks.
    if (counts_instructions()) {
        probes probing;
        for (const plan& size : sizes) {
            // Ours first: what others leave behind is theirs.
            std::for_each(all.rbegin(), all.rend(), [&](const auto& who) {
                if (who->unfit(size.bytes).empty()) {
                    write_counts(out, *who, size.bytes, probing);
                }
            });
        }
    }
    out.add({{"what", "clear a page"}}, support::page_size, {clear_page_cost(clock)});
    out.add({{"what", "fork without a buffer"}}, 0, measure_bare_fork(clock, 5));
    for (const plan& size : sizes) {
        for (const auto& who : all) {
            const std::string unfit = who->unfit(size.bytes);
            if (!unfit.empty()) {
                out.skip(who->name(), size.bytes, unfit);
                continue;
            }
            write_steps(out, *who, size, clock);
        }
    }
    return EXIT_SUCCESS;
}

} // namespace

int main(int count, char** arguments) {
    const bool quick = count > 2 && std::string(arguments[2]) == "--quick";
    if (count < 2 || count > 3 || (count == 3 && !quick)) {
        std::fputs("usage: bench_registration OUTPUT.jsonl [--quick]\n", stderr);
        return 2;
    }
    if (std::getenv("HCAMEM_GUEST") == nullptr) {
        std::fputs("bench_registration runs only in the guest: make bench-registration\n", stderr);
        return 2;
    }
    try {
        recorder out(arguments[1]);
        return run(out, quick);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_registration: %s\n", error.what());
        return EXIT_FAILURE;
    }
}
