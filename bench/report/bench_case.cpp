// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "report/bench_case.hpp"

namespace bench {

const char* name_of(pattern what) {
    switch (what) {
    case pattern::pair:
        return "pair";
    case pattern::batch:
        return "batch";
    case pattern::bulk:
        return "bulk";
    case pattern::across:
        return "across";
    case pattern::mixed:
        return "mixed";
    case pattern::lkey:
        return "lkey";
    }
    return "";
}

std::string name_of(const bench_case& what) {
    return std::string(name_of(what.kind)) + "/" +
           (what.kind == pattern::mixed ? "mixed" : std::to_string(what.bytes)) + "/" +
           std::to_string(what.threads);
}

std::size_t per_iteration(pattern what) {
    switch (what) {
    case pattern::batch:
    case pattern::bulk:
        return batch_size;
    case pattern::lkey:
        return lkey_addresses;
    case pattern::pair:
    case pattern::across:
    case pattern::mixed:
        break;
    }
    return 1;
}

std::vector<bench_case> all_cases() {
    std::vector<bench_case> cases;
    for (const pattern what : {pattern::pair, pattern::batch, pattern::bulk}) {
        for (const int threads : {1, 2}) {
            for (const std::size_t bytes : {256, 4096, 65536}) {
                cases.push_back({what, bytes, threads});
            }
        }
    }
    for (const int threads : {1, 2}) {
        cases.push_back({pattern::mixed, 0, threads});
    }
    for (const std::size_t bytes : {256, 4096, 65536}) {
        cases.push_back({pattern::across, bytes, 2});
    }
    for (const std::size_t slabs : {1, 16, 256, 4096}) {
        cases.push_back({pattern::lkey, slabs * lkey_slab_bytes, 1});
    }
    return cases;
}

} // namespace bench
