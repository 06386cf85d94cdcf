// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "table.hpp"

#include <algorithm>

namespace ctl {

std::string text_table::text() const {
    std::vector<std::vector<std::string>> lines(1);
    for (const column& column : columns_) {
        lines[0].push_back(column.title);
    }
    for (const auto& row : rows_) {
        lines.push_back(row);
    }
    std::vector<std::size_t> widths(columns_.size());
    for (auto& line : lines) {
        line.resize(columns_.size());
        for (std::size_t i = 0; i < line.size(); ++i) {
            if (line[i].empty()) {
                line[i].push_back('-');
            }
            widths[i] = std::max(widths[i], line[i].size());
        }
    }
    std::string text;
    for (const auto& line : lines) {
        std::string out;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const std::string gap(widths[i] - line[i].size(), ' ');
            out += i == 0 ? "" : "  ";
            out += columns_[i].align == alignment::right ? gap + line[i] : line[i] + gap;
        }
        out.erase(out.find_last_not_of(' ') + 1);
        text += out + '\n';
    }
    return text;
}

} // namespace ctl
