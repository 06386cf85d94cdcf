// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "report/json.hpp"

#include <optional>

#include <nlohmann/json.hpp>

namespace bench {
namespace {

using json = nlohmann::ordered_json;

json number_or_null(std::optional<double> number) {
    return number ? json(*number) : json(nullptr);
}

} // namespace

std::string to_json(const results& all) {
    json rows = json::array();
    for (const result& one : all.all()) {
        if (one.whose == side::calibration) {
            continue;
        }
        json row;
        row["pattern"] = name_of(one.what.kind);
        row["bytes"] = one.what.kind == pattern::mixed ? json(nullptr) : json(one.what.bytes);
        row["threads"] = one.what.threads;
        row["impl"] = one.impl;
        row["ns"] = one.ns();
        row["ratio_to_best_peer"] = number_or_null(results::ratio(one, all.best_peer(one.what)));
        row["ratio_to_rte_mempool"] =
            number_or_null(results::ratio(one, all.find(one.what, "rte_mempool")));
        row["ratio_to_tcmalloc"] =
            number_or_null(results::ratio(one, all.find(one.what, "tcmalloc")));
        rows.push_back(std::move(row));
    }
    return rows.dump(1) + "\n";
}

} // namespace bench
