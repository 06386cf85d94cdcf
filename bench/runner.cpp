// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "runner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "contender.hpp"

namespace bench {
namespace {

std::string name_of(const bench_case& what, const entry& one) {
    return name_of(what) + "/" + one.name;
}

bool is_wanted(const options& how, const bench_case& what, const entry& one) {
    return std::regex_search(name_of(what, one), how.filter);
}

/// Keeps the ns per iteration of each repetition, by the name of the implementation.
class collector final : public benchmark::BenchmarkReporter {
  public:
    bool ReportContext(const Context& /*context*/) override { return true; }

    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs) {
            if (run.run_type != Run::RT_Iteration) {
                continue;
            }
            if (run.error_occurred) {
                std::fprintf(stderr, "bench_pool: %s: %s\n", run.run_name.function_name.c_str(),
                             run.error_message.c_str());
                continue;
            }
            // Iterations are those of all threads together, the time is that of one.
            samples_[run.run_name.function_name].push_back(run.real_accumulated_time * 1e9 *
                                                           static_cast<double>(run.threads) /
                                                           static_cast<double>(run.iterations));
        }
    }

    [[nodiscard]] std::vector<double> samples_of(const std::string& name) const {
        const auto found = samples_.find(name);
        return found != samples_.end() ? found->second : std::vector<double>{};
    }

  private:
    std::map<std::string, std::vector<double>> samples_;
};

struct set_up {
    const entry* what;
    std::unique_ptr<contender> runs;
};

class case_runner {
  public:
    explicit case_runner(const options& how) : how_(how), entries_(all_entries()) {
        // The library takes these as a command line only.
        std::string name = "bench_pool";
        std::string interleave = "--benchmark_enable_random_interleaving=true";
        std::array<char*, 3> arguments{name.data(), interleave.data(), nullptr};
        int count = arguments.size() - 1;
        benchmark::Initialize(&count, arguments.data());
    }

    void run(const bench_case& what, results& all) {
        const std::vector<set_up> contenders = prepare(what);
        if (contenders.empty()) {
            return;
        }
        std::fprintf(stderr, "%s\n", name_of(what).c_str());
        const collector tried = measure(what, contenders, [this](const auto&, auto& benchmark) {
            benchmark.MinWarmUpTime(how_.seconds)->MinTime(how_.seconds / 4)->Repetitions(3);
        });
        const collector timed = measure(what, contenders, [&](const auto& name, auto& benchmark) {
            benchmark.Iterations(iterations(tried.samples_of(name)))->Repetitions(how_.repetitions);
        });
        for (const set_up& one : contenders) {
            std::vector<double> samples = timed.samples_of(one.what->name);
            if (one.what->whose != side::calibration) {
                for (double& sample : samples) {
                    sample /= static_cast<double>(per_iteration(what.kind));
                }
            }
            if (!samples.empty()) {
                all.add({what, one.what->name, one.what->whose, std::move(samples)});
            }
        }
    }

  private:
    /// Runs all contenders' repetitions, after `configure` said how many and how long.
    template <class Configure>
    static collector measure(const bench_case& what, const std::vector<set_up>& contenders,
                             Configure configure) {
        benchmark::ClearRegisteredBenchmarks();
        for (const set_up& one : contenders) {
            contender* const runs = one.runs.get();
            benchmark::internal::Benchmark* const made = benchmark::RegisterBenchmark(
                one.what->name.c_str(), [runs](benchmark::State& state) { runs->run(state); });
            made->Threads(what.threads)->UseRealTime();
            configure(one.what->name, *made);
        }
        collector collected;
        benchmark::RunSpecifiedBenchmarks(&collected, ".");
        return collected;
    }

    /// How many fill a repetition. The library would count until a first try takes the time,
    /// and one interruption by another program would make that far too few; the shortest of
    /// several tries had none.
    [[nodiscard]] benchmark::IterationCount iterations(const std::vector<double>& ns) const {
        if (ns.empty()) {
            return 1;
        }
        const double count = how_.seconds * 1e9 / std::ranges::min(ns);
        return std::max<benchmark::IterationCount>(1, std::llround(count));
    }

    std::vector<set_up> prepare(const bench_case& what) {
        std::vector<set_up> contenders;
        bool any = false;
        for (const entry& one : entries_) {
            // The calibration loop is in every case that anything else is in.
            if (one.whose == side::calibration ? !any : !is_wanted(how_, what, one)) {
                continue;
            }
            if (std::unique_ptr<contender> made = make(one, what)) {
                contenders.push_back({&one, std::move(made)});
                any = true;
            }
        }
        return contenders;
    }

    std::unique_ptr<contender> make(const entry& one, const bench_case& what) {
        try {
            return one.make(what);
        } catch (const std::exception& error) {
            if (told_.insert(one.name).second) {
                std::fprintf(stderr, "bench_pool: %s is not measured: %s\n",
                             name_of(what, one).c_str(), error.what());
            }
            return nullptr;
        }
    }

    const options& how_;
    std::vector<entry> entries_;
    std::set<std::string> told_;
};

} // namespace

results run_cases(const options& how) {
    results all;
    case_runner runner(how);
    for (const bench_case& what : all_cases()) {
        runner.run(what, all);
    }
    return all;
}

void list_cases(const options& how) {
    for (const bench_case& what : all_cases()) {
        for (const entry& one : all_entries()) {
            if (one.whose != side::calibration && is_wanted(how, what, one)) {
                std::puts(name_of(what, one).c_str());
            }
        }
    }
}

} // namespace bench
