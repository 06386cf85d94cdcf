// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// From samples to what is reported of them.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/goal.hpp"
#include "report/json.hpp"
#include "report/result.hpp"
#include "report/table.hpp"
#include "report/write_file.hpp"

namespace {

using namespace bench;

constexpr bench_case small_pair{pattern::pair, 256, 1};
constexpr bench_case mixed{pattern::mixed, 0, 1};

results some_results() {
    results all;
    all.add({small_pair, "hcamem_alloc, hcamem_free", side::ours, {9, 5, 1}});
    all.add({small_pair, "hcamem::buffer_pool", side::ours, {2}});
    all.add({small_pair, "rte_mempool", side::peer, {4}});
    all.add({small_pair, "tcmalloc", side::peer, {10}});
    all.add({small_pair, "calibration", side::calibration, {1}});
    all.add({mixed, "hcamem_alloc, hcamem_free", side::ours, {30}});
    return all;
}

const nlohmann::json& row(const nlohmann::json& rows, const std::string& pattern,
                          const std::string& impl) {
    for (const auto& one : rows) {
        if (one["pattern"] == pattern && one["impl"] == impl) {
            return one;
        }
    }
    throw std::runtime_error("no row of " + impl);
}

class directory {
  public:
    directory() {
        std::string name = std::filesystem::temp_directory_path() / "bench.XXXXXX";
        if (mkdtemp(name.data()) == nullptr) {
            throw std::system_error(errno, std::generic_category(), name);
        }
        path_ = name;
    }
    directory(const directory&) = delete;
    directory& operator=(const directory&) = delete;
    directory(directory&&) = delete;
    directory& operator=(directory&&) = delete;
    ~directory() { std::filesystem::remove_all(path_); }

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

std::string text_of(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

TEST(BenchReport, median_and_spread_are_of_the_quartiles) {
    EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.5), 2);
    EXPECT_DOUBLE_EQ(quantile({4, 1, 2, 3}, 0.5), 2.5);
    EXPECT_DOUBLE_EQ(quantile({7}, 0.75), 7);
    const result one{small_pair, "x", side::peer, {10, 12, 8, 20, 9}};
    EXPECT_DOUBLE_EQ(one.ns(), 10);
    EXPECT_DOUBLE_EQ(one.spread(), 0.3);
}

TEST(BenchReport, ratios_are_to_peers_of_the_same_case_or_null) {
    const auto rows = nlohmann::json::parse(to_json(some_results()));
    ASSERT_EQ(rows.size(), 5U) << "the calibration loop is no implementation";
    const auto& ours = row(rows, "pair", "hcamem_alloc, hcamem_free");
    EXPECT_EQ(ours["bytes"], 256);
    EXPECT_EQ(ours["threads"], 1);
    EXPECT_DOUBLE_EQ(ours["ns"], 5);
    EXPECT_DOUBLE_EQ(ours["ratio_to_best_peer"], 1.25) << "the best peer, not the best of all";
    EXPECT_DOUBLE_EQ(ours["ratio_to_rte_mempool"], 1.25);
    EXPECT_DOUBLE_EQ(ours["ratio_to_tcmalloc"], 0.5);
    const auto& alone = row(rows, "mixed", "hcamem_alloc, hcamem_free");
    EXPECT_TRUE(alone["bytes"].is_null());
    EXPECT_TRUE(alone["ratio_to_best_peer"].is_null());
    EXPECT_TRUE(alone["ratio_to_tcmalloc"].is_null());
}

TEST(BenchReport, a_goal_is_met_missed_or_not_measured) {
    const std::vector<figure> figures{{"share of a slab usable as 4 KiB blocks", 1}};
    for (const verdict& one : judge(some_results(), figures)) {
        if (one.ours == "pair: hcamem::buffer_pool") {
            EXPECT_EQ(one.values.size(), 6U);
            EXPECT_EQ(one.measured(), 1U);
            EXPECT_EQ(one.met(), 1U) << "0.5 of at most 0.7";
        } else if (one.ours == "share of a slab usable as 4 KiB blocks") {
            EXPECT_EQ(one.met(), 1U) << "at least, not at most";
        } else if (one.ours.starts_with("mixed") || one.ours.starts_with("lkey")) {
            EXPECT_EQ(one.measured(), 0U);
        }
    }
    const std::vector<figure> less{{"share of a slab usable as 4 KiB blocks", 0.99}};
    EXPECT_NE(goal_table(judge(some_results(), less)).find("MISSED"), std::string::npos);
}

TEST(BenchReport, a_file_is_replaced_whole_or_not_at_all) {
    const directory work;
    const std::filesystem::path file = work.path() / "pool.json";
    write_file(file, "old");
    write_file(file, "new");
    EXPECT_EQ(text_of(file), "new");
    // A directory in the place of the file that is written first.
    std::filesystem::create_directory(file.string() + ".tmp");
    EXPECT_THROW(write_file(file, "newer"), std::system_error);
    EXPECT_EQ(text_of(file), "new");
}

} // namespace
