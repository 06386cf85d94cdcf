// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "scenes.hpp"

#include <hcamem/memory_resource.hpp>

#include <cstdio>
#include <memory_resource>
#include <string>
#include <vector>

namespace samples {

std::uint64_t show_pmr(stage& on) {
    hcamem::memory_resource resource(on.pool);

    // The strings take their memory from the vector's resource by themselves.
    std::pmr::vector<std::pmr::string> lines(&resource);
    for (int i = 0; i < 10; ++i) {
        lines.emplace_back(static_cast<std::size_t>(100 + i), static_cast<char>('0' + i));
    }

    std::uint64_t wrong = 0;
    for (const auto& line : lines) {
        std::pmr::string received(line.size(), '\0', &resource);
        on.wire.transfer(on.binding.sge(line.data(), line.size()),
                         on.binding.sge(received.data(), received.size()));
        wrong += received == line ? 0 : 1;
    }
    std::printf("std::pmr::vector with %zu std::pmr::string, each sent from its storage\n",
                lines.size());

    // The standard resources stack on top: here a region that is given back as a whole.
    std::pmr::monotonic_buffer_resource region(&resource);
    std::pmr::vector<measurement> sent(&region);
    std::pmr::vector<measurement> received(&region);
    for (std::uint64_t i = 0; i < 100; ++i) {
        sent.push_back({i, static_cast<double>(i) / 7.0});
    }
    received.resize(sent.size());
    const std::size_t bytes = sent.size() * sizeof(measurement);
    on.wire.transfer(on.binding.sge(sent.data(), bytes), on.binding.sge(received.data(), bytes));
    for (std::size_t i = 0; i < sent.size(); ++i) {
        wrong += sent[i] == received[i] ? 0 : 1;
    }
    std::printf("std::pmr::monotonic_buffer_resource over the pool: %zu elements sent\n",
                sent.size());
    return wrong;
}

} // namespace samples
