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

std::size_t buffers_per_iteration(pattern what) {
    return what == pattern::batch || what == pattern::bulk ? batch_size : 1;
}

std::vector<bench_case> all_cases() {
    std::vector<bench_case> cases;
    for (const pattern what : {pattern::pair, pattern::batch, pattern::bulk, pattern::across}) {
        for (const int threads : {1, 2}) {
            if (what == pattern::across && threads == 1) {
                continue;
            }
            for (const std::size_t bytes : {256, 4096, 65536}) {
                cases.push_back({what, bytes, threads});
            }
        }
    }
    cases.push_back({pattern::mixed, 0, 1});
    cases.push_back({pattern::mixed, 0, 2});
    for (const std::size_t slabs : {1, 16, 256, 4096}) {
        cases.push_back({pattern::lkey, slabs * lkey_slab_bytes, 1});
    }
    return cases;
}

} // namespace bench
