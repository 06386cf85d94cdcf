// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "scenes.hpp"

#include <hcamem/allocator.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace samples {
namespace {

using pool_vector = std::vector<measurement, hcamem::allocator<measurement>>;

ibv_sge storage(const stage& on, const pool_vector& vector) {
    return on.binding.sge(vector.data(), vector.size() * sizeof(measurement));
}

std::uint64_t differences(const pool_vector& sent, const pool_vector& received) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < sent.size(); ++i) {
        count += sent[i] == received[i] ? 0 : 1;
    }
    return count;
}

} // namespace

std::uint64_t show_vectors(stage& on, std::size_t elements) {
    std::puts("std::vector<measurement, hcamem::allocator<measurement>>");
    pool_vector sent{hcamem::allocator<measurement>(on.pool)};
    pool_vector received{hcamem::allocator<measurement>(on.pool)};
    std::uint64_t wrong = 0;
    std::size_t target = std::min<std::size_t>(elements, 100);
    for (;;) {
        // push_back() moves the elements to larger blocks of the pool as it goes; nothing has to
        // be registered again, since the slabs are.
        while (sent.size() < target) {
            const auto number = static_cast<double>(sent.size());
            sent.push_back({sent.size(), number * number / 3.0});
        }
        received.assign(sent.size(), measurement{});
        const std::uint32_t length = on.wire.transfer(storage(on, sent), storage(on, received));
        wrong +=
            length == sent.size() * sizeof(measurement) ? differences(sent, received) : sent.size();
        std::printf("  %8zu elements sent from %p, received in %p\n", sent.size(),
                    static_cast<const void*>(sent.data()),
                    static_cast<const void*>(received.data()));
        if (target == elements) {
            break;
        }
        target = std::min(elements, target * 10);
    }

    // A part from the middle goes just as well: every address in the pool has a key.
    const std::size_t first = sent.size() / 3;
    const std::size_t count = sent.size() - first;
    pool_vector part(count, measurement{}, hcamem::allocator<measurement>(on.pool));
    on.wire.transfer(on.binding.sge(&sent[first], count * sizeof(measurement)), storage(on, part));
    wrong += static_cast<std::uint64_t>(
        count -
        static_cast<std::size_t>(std::count_if(part.begin(), part.end(), [&](const auto& m) {
            return m == sent[first + static_cast<std::size_t>(&m - part.data())];
        })));
    std::printf("  %8zu elements sent from the middle, at element %zu\n", count, first);
    return wrong;
}

} // namespace samples
