// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_REPORT_JSON_HPP
#define BENCH_REPORT_JSON_HPP

#include <string>

#include "report/result.hpp"

namespace bench {

/// An array with one object per implementation and case:
///   pattern, bytes (null: mixed), threads, impl, ns,
///   ratio_to_best_peer, ratio_to_rte_mempool, ratio_to_tcmalloc (null: it is not in the case)
std::string to_json(const results& all);

} // namespace bench

#endif
