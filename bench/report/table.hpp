// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What people read: tables in Markdown, which a terminal shows well enough.
#ifndef BENCH_REPORT_TABLE_HPP
#define BENCH_REPORT_TABLE_HPP

#include <string>
#include <vector>

#include "report/goal.hpp"
#include "report/result.hpp"

namespace bench {

/// Rows of cells, the first is the heading, with columns as wide as their widest cell.
/// The first column is set left, the others right.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

/// Goal, what was measured in each of its cases, met or missed.
std::string goal_table(const std::vector<verdict>& verdicts);

/// Medians in ns of one pattern: implementations by sizes and threads. Empty without results.
std::string time_table(const results& all, pattern what);

/// Name and value of what has no goal too.
std::string figure_table(const std::vector<figure>& figures);

/// How much repetitions differed, per implementation, and warnings that follow from it.
/// `elsewhere`: processors that were busy with something else.
std::string noise_text(const results& all, double elsewhere);

} // namespace bench

#endif
