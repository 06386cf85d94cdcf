// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Runs a program under hcamem-run and reads the reports.
#ifndef TESTS_PRELOAD_RUN_HPP
#define TESTS_PRELOAD_RUN_HPP

#include <map>
#include <string>
#include <vector>

#include "support/json.hpp"
#include "support/process.hpp"

namespace preload {

using Words = std::vector<std::string>;

std::string build_folder();

struct Run {
    support::Finished end;
    std::map<std::string, std::string> said; ///< NAME=VALUE lines on standard output
    std::vector<support::Json> reports;      ///< of the process and its children, as they ended

    /// Lines on standard error that the library wrote.
    [[nodiscard]] long lines() const;
};

/// hcamem-run with these options and this environment, and a report.
Run run(const Words& options, const Words& words, const Words& environment);

/// Whether memory was taken for a pool of this name.
bool taken(const support::Json& report, const std::string& pool);

} // namespace preload

#endif
