// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What is measured: cases, and the implementations that contend in them.
#ifndef BENCH_CONTENDER_HPP
#define BENCH_CONTENDER_HPP

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "report/bench_case.hpp"

namespace bench {

/// One implementation, set up for one case. It lives for all repetitions of the case.
class contender {
  public:
    contender() = default;
    contender(const contender&) = delete;
    contender& operator=(const contender&) = delete;
    contender(contender&&) = delete;
    contender& operator=(contender&&) = delete;
    virtual ~contender() = default;

    /// Called in each of the case's threads, for each repetition; times its loop over `state`.
    virtual void run(benchmark::State& state) = 0;
};

/// Sets an implementation up for a case. nullptr: it does not do this pattern. Throws
/// std::runtime_error with the reason if it cannot be had on this machine.
using contender_maker = std::function<std::unique_ptr<contender>(const bench_case&)>;

struct entry {
    std::string name;
    side whose;
    contender_maker make;
};

/// All that were linked in: ours first, then the peers, each by name.
std::vector<entry> all_entries();

/// One of these in a source file enters what is in that file.
class registered {
  public:
    registered(std::string name, side whose, contender_maker make);
};

} // namespace bench

#endif
