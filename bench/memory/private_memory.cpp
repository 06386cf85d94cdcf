// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "memory/private_memory.hpp"

#include <cstdio>
#include <fstream>
#include <string>

#include <malloc.h>

namespace bench {

std::uint64_t private_bytes(const std::function<bool(const void*)>& left_out) {
    malloc_trim(0);
    std::ifstream in("/proc/self/smaps");
    std::uint64_t sum = 0;
    bool counts = false;
    for (std::string line; std::getline(in, line);) {
        std::uint64_t begin = 0;
        std::uint64_t kilobytes = 0;
        // proc(5): each mapping has a line that begins with its addresses.
        if (std::sscanf(line.c_str(), "%lx-%*x ", &begin) == 1 && line.find('-') < line.find(' ')) {
            counts = !left_out(reinterpret_cast<const void*>(begin));
        } else if (counts && (std::sscanf(line.c_str(), "Private_Clean: %lu", &kilobytes) == 1 ||
                              std::sscanf(line.c_str(), "Private_Dirty: %lu", &kilobytes) == 1)) {
            sum += kilobytes * 1024;
        }
    }
    return sum;
}

} // namespace bench
