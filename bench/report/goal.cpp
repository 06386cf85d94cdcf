// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "report/goal.hpp"

#include <algorithm>

namespace bench {
namespace {

constexpr const char* general = "hcamem_alloc, hcamem_free";
constexpr const char* general_bulk = "hcamem_alloc_n, hcamem_free_n";
constexpr const char* fixed = "hcamem_fixed_get, hcamem_fixed_put";
constexpr const char* inlined = "hcamem::buffer_pool";

/// Our time is at most so many times the peer's.
struct ratio_goal {
    pattern what;
    const char* ours;
    const char* peer;
    double limit;
};

constexpr ratio_goal ratio_goals[] = {
    {pattern::pair, inlined, "rte_mempool", 0.7},
    {pattern::pair, fixed, "rte_mempool", 1.1},
    {pattern::pair, general, "tcmalloc", 1.0},
    {pattern::bulk, inlined, "rte_mempool", 1.2},
    {pattern::bulk, fixed, "rte_mempool", 1.2},
    {pattern::bulk, general_bulk, "rte_mempool", 1.2},
    {pattern::across, inlined, "rte_mempool", 1.2},
    {pattern::across, fixed, "rte_mempool", 1.2},
    {pattern::across, general, "rte_mempool", 1.2},
    {pattern::mixed, general, "mimalloc", 0.8},
    {pattern::mixed, general, "tcmalloc", 1.3},
};

constexpr double lkey_ns = 2;

struct figure_goal {
    const char* name;
    bool at_most;
    double limit;
};

// Names of memory/.
constexpr figure_goal figure_goals[] = {
    {"live bytes / slab bytes, first fill", false, 0.90},
    {"live bytes / slab bytes, after 3 million replacements", false, 0.78},
    {"bookkeeping bytes / slab bytes, 4 KiB blocks", true, 0.01},
    {"bookkeeping bytes / slab bytes, 4 KiB fixed buffers", true, 0.01},
    {"share of a slab usable as 4 KiB blocks", false, 1.0},
    {"share of a slab usable as 4 KiB fixed buffers", false, 1.0},
};

std::optional<double> measured_ratio(const results& all, const bench_case& what,
                                     const ratio_goal& goal) {
    const result* const ours = all.find(what, goal.ours);
    return ours != nullptr ? results::ratio(*ours, all.find(what, goal.peer)) : std::nullopt;
}

verdict judge_ratio(const results& all, const ratio_goal& goal) {
    verdict made{
        std::string(name_of(goal.what)) + ": " + goal.ours, goal.peer, "x", true, goal.limit, {}};
    for (const bench_case& what : all_cases()) {
        if (what.kind == goal.what) {
            made.values.push_back(measured_ratio(all, what, goal));
        }
    }
    return made;
}

verdict judge_lkey(const results& all) {
    verdict made{"lkey: hcamem_lkey", "", "ns", true, lkey_ns, {}};
    for (const bench_case& what : all_cases()) {
        if (what.kind == pattern::lkey) {
            const result* const ours = all.find(what, "hcamem_lkey");
            made.values.push_back(ours != nullptr ? std::optional(ours->ns()) : std::nullopt);
        }
    }
    return made;
}

} // namespace

std::size_t verdict::measured() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(values, [](const auto& value) { return value.has_value(); }));
}

std::size_t verdict::met() const {
    return static_cast<std::size_t>(std::ranges::count_if(values, [this](const auto& value) {
        return value && (at_most ? *value <= limit : *value >= limit);
    }));
}

std::vector<verdict> judge(const results& all, const std::vector<figure>& figures) {
    std::vector<verdict> verdicts;
    for (const ratio_goal& goal : ratio_goals) {
        verdicts.push_back(judge_ratio(all, goal));
    }
    verdicts.push_back(judge_lkey(all));
    for (const figure_goal& goal : figure_goals) {
        const auto found = std::ranges::find(figures, goal.name, &figure::name);
        verdicts.push_back({goal.name,
                            "",
                            "",
                            goal.at_most,
                            goal.limit,
                            {found != figures.end() ? std::optional(found->value) : std::nullopt}});
    }
    return verdicts;
}

} // namespace bench
