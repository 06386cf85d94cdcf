// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "support/mapped.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace unit {

namespace {

struct entry {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char rights[5] = "";
};

std::vector<entry> read_maps() {
    std::ifstream maps("/proc/self/maps");
    std::vector<entry> entries;
    std::string line;
    while (std::getline(maps, line)) {
        entry each;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &each.begin, &each.end,
                        each.rights) == 3) {
            entries.push_back(each);
        }
    }
    return entries;
}

} // namespace

bool is_accessible(const void* address) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    const std::vector<entry> all = read_maps();
    return std::any_of(all.begin(), all.end(), [&](const entry& each) {
        return wanted >= each.begin && wanted < each.end && each.rights[0] == 'r' &&
               each.rights[1] == 'w';
    });
}

std::size_t mapping_count(const void* begin, std::size_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(begin);
    const std::vector<entry> all = read_maps();
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const entry& each) {
        return each.begin < first + bytes && each.end > first;
    }));
}

std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

} // namespace unit
