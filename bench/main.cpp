// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The benchmark of the allocators; see docs/performance.md.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "memory/figures.hpp"
#include "options.hpp"
#include "report/goal.hpp"
#include "report/json.hpp"
#include "report/machine.hpp"
#include "report/table.hpp"
#include "report/write_file.hpp"
#include "runner.hpp"
#include "support/room_for_tls.hpp"

namespace {

using namespace bench;

std::vector<figure> measure_memory(const options& how) {
    constexpr std::uint64_t replacements = 3'000'000;
    std::vector<figure> all;
    if (!std::regex_search("memory", how.filter)) {
        return all;
    }
    std::fputs("memory\n", stderr);
    for (const auto& some :
         {measure_bookkeeping(), measure_usable(), measure_fixed(), measure_fill(replacements)}) {
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

int run(const options& how) {
    setenv("HCAMEM_SOURCE", how.source.c_str(), 1);
    const load_meter load;
    // First, while the process has no more memory than it must.
    const std::vector<figure> figures = measure_memory(how);
    const results all = run_cases(how);

    const std::string goals = goal_table(judge(all, figures));
    const std::string caution =
        how.quick ? "Quick: whether a time reaches its goal cannot be told from so short a run.\n"
                  : "";
    const std::string noise = all.all().empty() ? "" : noise_text(all, load.busy_elsewhere());
    std::string text = machine_line() + "\n" + std::to_string(how.repetitions) +
                       " repetitions, hcamem on " + how.source + "\n\n" + goals + caution + "\n";
    for (const pattern what : {pattern::pair, pattern::batch, pattern::bulk, pattern::mixed,
                               pattern::across, pattern::lkey}) {
        const std::string table = time_table(all, what);
        text += table.empty() ? "" : table + "\n";
    }
    text += (figures.empty() ? "" : figure_table(figures) + "\n") + noise;

    std::filesystem::create_directories(how.directory);
    write_file(how.directory / "pool.json", to_json(all));
    write_file(how.directory / "pool.md", text);
    std::fputs((goals + caution + "\n" + noise).c_str(), stdout);
    return EXIT_SUCCESS;
}

} // namespace

int main(int count, char** arguments) {
    ensure_room_for_tls(arguments);
    try {
        const options how = parse_options(count, arguments);
        if (how.list) {
            list_cases(how);
            return EXIT_SUCCESS;
        }
        return run(how);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_pool: %s\n", error.what());
        return EXIT_FAILURE;
    }
}
