// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "run.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace preload {

namespace {

std::string fresh_path() {
    static int number = 0;
    return std::filesystem::temp_directory_path() /
           ("preload-test-" + std::to_string(getpid()) + "-" + std::to_string(++number));
}

} // namespace

std::string build_folder() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path().string();
}

long Run::lines() const {
    std::istringstream text(end.err);
    long count = 0;
    for (std::string line; std::getline(text, line);) {
        count += line.starts_with("hcamem: ") ? 1 : 0;
    }
    return count;
}

Run run(const Words& options, const Words& words, const Words& environment) {
    const std::string report = fresh_path();
    std::filesystem::remove(report); // of a process that had our number and was killed
    Words all{build_folder() + "/bin/hcamem-run", "--report=" + report};
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), words.begin(), words.end());
    support::ProcessOptions how;
    how.environment = environment;
    Run result;
    result.end = support::run(all, how);
    std::istringstream lines(result.end.out);
    for (std::string line; std::getline(lines, line);) {
        const auto equals = line.find('=');
        if (equals != std::string::npos) {
            result.said[line.substr(0, equals)] = line.substr(equals + 1);
        }
    }
    std::ifstream file(report);
    for (std::string line; std::getline(file, line);) {
        result.reports.push_back(support::Json::parse(line));
    }
    std::filesystem::remove(report);
    return result;
}

bool taken(const support::Json& report, const std::string& pool) {
    const auto& pools = report["pools"].list();
    return std::any_of(pools.begin(), pools.end(), [&](const support::Json& each) {
        return each["name"].string() == pool && each["taken"].unsigned_number() == 1;
    });
}

} // namespace preload
