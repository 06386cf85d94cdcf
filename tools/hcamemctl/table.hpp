// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEMCTL_TABLE_HPP
#define HCAMEMCTL_TABLE_HPP

#include <string>
#include <vector>

namespace ctl {

/// Aligned columns for people. Cells must be printable ASCII: see printable().
class text_table {
  public:
    enum class alignment { left, right };
    struct column {
        std::string title;
        alignment align = alignment::left;
    };

    explicit text_table(std::vector<column> columns) : columns_(std::move(columns)) {}
    /// An empty cell is shown as "-".
    void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
    [[nodiscard]] bool empty() const { return rows_.empty(); }
    /// Title line and rows, each with its newline.
    [[nodiscard]] std::string text() const;

  private:
    std::vector<column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

} // namespace ctl

#endif
