// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "report/table.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>

namespace bench {
namespace {

__attribute__((format(printf, 1, 2))) std::string format(const char* how, ...) {
    char text[256];
    std::va_list arguments;
    va_start(arguments, how);
    std::vsnprintf(text, sizeof text, how, arguments);
    va_end(arguments);
    return text;
}

std::string size_text(std::size_t bytes) {
    constexpr std::size_t unit = 1024;
    if (bytes >= unit * unit) {
        return std::to_string(bytes / unit / unit) + " MiB";
    }
    return bytes >= unit ? std::to_string(bytes / unit) + " KiB" : std::to_string(bytes) + " B";
}

std::string column_name(const bench_case& what) {
    const std::string threads =
        what.threads == 1 ? "1 thread" : std::to_string(what.threads) + " threads";
    return what.kind == pattern::mixed ? threads : size_text(what.bytes) + ", " + threads;
}

std::string time_text(double ns) {
    return format(ns < 100 ? "%.2f" : "%.0f", ns);
}

} // namespace

std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths(rows.front().size(), 3);
    for (const auto& row : rows) {
        for (std::size_t column = 0; column < row.size(); ++column) {
            widths[column] = std::max(widths[column], row[column].size());
        }
    }
    std::string text;
    const auto add_row = [&](const std::vector<std::string>& cells) {
        for (std::size_t column = 0; column < widths.size(); ++column) {
            const std::string space(widths[column] - cells[column].size(), ' ');
            text += column == 0 ? "| " : " | ";
            // Names to the left, numbers to the right.
            text.append(column == 0 ? cells[column] : space)
                .append(column == 0 ? space : cells[column]);
        }
        text += " |\n";
    };
    add_row(rows.front());
    std::vector<std::string> line;
    for (const std::size_t width : widths) {
        line.push_back(std::string(width - 1, '-') + (line.empty() ? "-" : ":"));
    }
    add_row(line);
    for (std::size_t index = 1; index < rows.size(); ++index) {
        add_row(rows[index]);
    }
    return text;
}

std::string goal_table(const std::vector<verdict>& verdicts) {
    std::vector<std::vector<std::string>> rows{{"ours", "against", "goal", "measured", ""}};
    for (const verdict& one : verdicts) {
        std::string values;
        for (const std::optional<double>& value : one.values) {
            values += (values.empty() ? "" : " ") + (value ? format("%.3f", *value) : "-");
        }
        std::string outcome = "not measured";
        if (one.measured() != 0) {
            const std::size_t missed = one.measured() - one.met();
            outcome = missed == 0 ? "met"
                      : one.measured() == 1
                          ? "MISSED"
                          : format("MISSED in %zu of %zu", missed, one.measured());
        }
        rows.push_back({one.ours, one.against,
                        format("%s %.2f%s%s", one.at_most ? "<=" : ">=", one.limit,
                               one.unit.empty() ? "" : " ", one.unit.c_str()),
                        values, outcome});
    }
    return markdown_table(rows) + "\nMeasured: 256 B, 4 KiB, 64 KiB with one thread, then with two "
                                  "(across: two; mixed: one "
                                  "thread,\ntwo; lkey: 1, 16, 256, 4096 slabs).\n";
}

std::string time_table(const results& all, pattern what) {
    std::vector<bench_case> cases;
    std::vector<std::string> impls;
    for (const result& one : all.all()) {
        if (one.what.kind != what || one.whose == side::calibration) {
            continue;
        }
        if (std::ranges::find(cases, one.what) == cases.end()) {
            cases.push_back(one.what);
        }
        if (std::ranges::find(impls, one.impl) == impls.end()) {
            impls.push_back(one.impl);
        }
    }
    if (cases.empty()) {
        return "";
    }
    std::vector<std::vector<std::string>> rows{{std::string(name_of(what)) + ", ns"}};
    for (const bench_case& one : cases) {
        rows.front().push_back(column_name(one));
    }
    for (const std::string& impl : impls) {
        rows.push_back({impl});
        for (const bench_case& one : cases) {
            const result* const found = all.find(one, impl);
            rows.back().push_back(found != nullptr ? time_text(found->ns()) : "-");
        }
    }
    return markdown_table(rows);
}

std::string figure_table(const std::vector<figure>& figures) {
    std::vector<std::vector<std::string>> rows{{"memory", "share"}};
    for (const figure& one : figures) {
        rows.push_back({one.name, format("%.4f", one.value)});
    }
    return markdown_table(rows);
}

std::string noise_text(const results& all, double elsewhere) {
    std::map<std::string, std::vector<double>> spreads;
    for (const result& one : all.all()) {
        spreads[one.impl].push_back(one.spread());
    }
    std::vector<std::vector<std::string>> rows{{"spread of repetitions", "median", "largest"}};
    for (const auto& [impl, values] : spreads) {
        rows.push_back({impl, format("%.1f %%", 100 * quantile(values, 0.5)),
                        format("%.1f %%", 100 * std::ranges::max(values))});
    }
    std::string text = markdown_table(rows);
    text +=
        "\nSpread: distance of the quartiles over the median, median and largest of all cases.\n";

    constexpr double much_spread = 0.05;
    constexpr double much_load = 0.1;
    const std::vector<double> loop = all.calibration();
    if (!loop.empty()) {
        const double spread = (quantile(loop, 0.75) - quantile(loop, 0.25)) / quantile(loop, 0.5);
        text +=
            format("The calibration loop took %.2f ns, with a spread of %.1f %% over the run.\n",
                   quantile(loop, 0.5), 100 * spread);
        if (spread > much_spread) {
            text += "WARNING: the processor's speed varied; run again on a quieter machine.\n";
        }
    }
    text += format("Others kept %.2f processors busy.\n", elsewhere);
    if (elsewhere > much_load) {
        text += "WARNING: the machine had other work; do not trust small differences.\n";
    }
    return text;
}

} // namespace bench
