// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "support/pools.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace unit {

std::uint32_t test_source() {
    const char* value = std::getenv("HCAMEM_TEST_SOURCE");
    const std::string source = value != nullptr ? value : "memory";
    if (source == "device") {
        return HCAMEM_DEVICE;
    }
    if (source != "memory") {
        throw std::runtime_error("HCAMEM_TEST_SOURCE is device or memory, not " + source);
    }
    return HCAMEM_MEMORY;
}

hcamem_options test_options() {
    hcamem_options options{};
    hcamem_options_init(&options, sizeof options);
    options.source = test_source();
    options.mapping = HCAMEM_MAP_AUTO;
    options.fork = HCAMEM_FORK_ZERO;
    options.numa_node = -1;
    options.flags = HCAMEM_OPT_MISUSE_ERROR;
    options.initial = 0;
    options.growth = 0;
    options.maximum = 64 * MiB;
    options.hca = nullptr;
    return options;
}

pool_ptr make_pool(const hcamem_options& options) {
    hcamem_pool* pool = nullptr;
    const int result = hcamem_pool_create(&options, &pool);
    if (result != 0) {
        throw std::runtime_error(std::string("hcamem_pool_create: ") + hcamem_last_message());
    }
    return pool_ptr(pool);
}

hcamem_stats stats_of(const hcamem_pool* pool) {
    hcamem_stats stats{};
    stats.size = sizeof stats;
    if (hcamem_get_stats(pool, &stats) != 0) {
        throw std::runtime_error(std::string("hcamem_get_stats: ") + hcamem_last_message());
    }
    return stats;
}

} // namespace unit
