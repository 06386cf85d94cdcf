// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "probes/zeroing.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "support/guest.hpp"

namespace bench {
namespace {

using support::page_size;

bool processor_has(const std::string& flag) {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("flags")) {
            std::istringstream flags(line.substr(line.find(':') + 1));
            for (std::string one; flags >> one;) {
                if (one == flag) {
                    return true;
                }
            }
            return false;
        }
    }
    return false;
}

// As arch/x86/lib/clear_page_64.S, called as the kernel does.
[[gnu::noinline]] void clear_by_bytes(std::byte* page) {
    std::size_t count = page_size;
    asm volatile("rep stosb" : "+D"(page), "+c"(count) : "a"(0) : "memory");
}

[[gnu::noinline]] void clear_by_words(std::byte* page) {
    std::size_t count = page_size / 8;
    asm volatile("rep stosq" : "+D"(page), "+c"(count) : "a"(0L) : "memory");
}

} // namespace

std::string clear_page_function() {
    if (processor_has("erms")) {
        return "clear_page_erms";
    }
    if (processor_has("rep_good")) {
        return "clear_page_rep";
    }
    throw std::runtime_error("this processor clears pages in a way whose cost is not known here");
}

std::int64_t clear_page_cost(const ticker& clock) {
    auto* const clear = processor_has("erms") ? clear_by_bytes : clear_by_words;
    constexpr std::size_t pages = 64;
    const auto memory = std::make_unique<std::byte[]>((pages + 1) * page_size);
    const std::size_t head = page_size - reinterpret_cast<std::uintptr_t>(memory.get()) % page_size;
    std::vector<std::int64_t> samples;
    constexpr int repetitions = 9;
    samples.reserve(repetitions);
    for (int times = 0; times < repetitions; ++times) {
        samples.push_back(clock.around([&] {
            for (std::size_t page = 0; page < pages; ++page) {
                clear(memory.get() + head + page * page_size);
            }
        }));
    }
    std::ranges::sort(samples);
    return samples[samples.size() / 2] / static_cast<std::int64_t>(pages);
}

} // namespace bench
