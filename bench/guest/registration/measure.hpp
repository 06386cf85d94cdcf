// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The life of one buffer: what each step costs, and what the kernel does for it.
#ifndef BENCH_GUEST_MEASURE_HPP
#define BENCH_GUEST_MEASURE_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "candidates/candidate.hpp"
#include "probes/call_count.hpp"
#include "probes/clock.hpp"
#include "probes/registrations.hpp"
#include "support/page_pins.hpp"

namespace bench {

/// Instructions or nanoseconds, one value per repetition.
struct steps {
    std::vector<std::int64_t> obtain; // until a byte of each page was written, less the writing
    std::vector<std::int64_t> enroll;
    std::vector<std::int64_t> withdraw;
    std::vector<std::int64_t> release;
};

struct times {
    int warm_ups; // not reported
    int repetitions;
};

steps measure_steps(candidate& who, std::size_t bytes, const ticker& clock, const times& how_often);

/// What fork() takes, in the parent, while a buffer of this size is registered.
std::vector<std::int64_t> measure_fork(candidate& who, std::size_t bytes, const ticker& clock,
                                       int repetitions);

/// The same of this process without a buffer.
std::vector<std::int64_t> measure_bare_fork(const ticker& clock, int repetitions);

struct counts {
    std::uint64_t faults = 0;           // page faults while obtaining and touching
    std::uint64_t cleared_pages = 0;    // of 4 KiB that the kernel zeroed meanwhile
    std::uint64_t page_table_bytes = 0; // that the address space grew by: VmPTE
    std::uint64_t pinned_pages = 0;     // by their addresses, while registering
    std::uint64_t dma_segments = 0;
    std::uint64_t table_ticks = 0; // soft-RoCE's own table, part of registering
};

/// All probes, set once: they slow down everything.
class probes {
  public:
    probes();
    counts measure(candidate& who, std::size_t bytes);

  private:
    support::PagePins pins_;
    registrations registrations_;
    call_count cleared_;
};

} // namespace bench

#endif
