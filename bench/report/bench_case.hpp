// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_REPORT_BENCH_CASE_HPP
#define BENCH_REPORT_BENCH_CASE_HPP

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

enum class pattern {
    pair,   // get one, give it back
    batch,  // get 64 one by one, give them back one by one
    bulk,   // the same by calls that take 64 at once
    mixed,  // sizes of eager messages, a random one of many live buffers replaced
    across, // one thread gets, another gives back
    lkey,   // the key of an address
};

const char* name_of(pattern what);

struct bench_case {
    pattern kind;
    std::size_t bytes; // of a buffer; lkey: of the pool; mixed: 0
    int threads;

    friend bool operator==(const bench_case&, const bench_case&) = default;
};

/// "pair/4096/2": pattern, bytes, threads.
std::string name_of(const bench_case& what);

/// What one iteration of the pattern's loop does: buffers got and given back, or keys found.
std::size_t per_iteration(pattern what);

std::vector<bench_case> all_cases();

enum class side { ours, peer, calibration };

inline constexpr std::size_t batch_size = 64;
// So few that they stay in the L1 cache, the library's tables beside them.
inline constexpr std::size_t lkey_addresses = 1024;
inline constexpr std::size_t lkey_slab_bytes = std::size_t{2} << 20;

} // namespace bench

#endif
