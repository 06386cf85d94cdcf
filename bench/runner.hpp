// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_RUNNER_HPP
#define BENCH_RUNNER_HPP

#include "options.hpp"
#include "report/result.hpp"

namespace bench {

/// Runs case after case. In a case every implementation is set up, and then their repetitions
/// take turns in random order, so that what the machine does meanwhile meets all of them alike.
/// An implementation that cannot be had is told on standard error, once.
results run_cases(const options& how);

/// Prints the names of all that run_cases() would run.
void list_cases(const options& how);

} // namespace bench

#endif
