// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "ours/pools.hpp"

#include <stdexcept>
#include <string>

namespace bench {
namespace {

hcamem::pool made_with(const hcamem_options& options) {
    hcamem_pool* pool = nullptr;
    if (hcamem_pool_create(&options, &pool) != 0) {
        throw std::runtime_error(std::string("hcamem_pool_create: ") + hcamem_last_message());
    }
    return hcamem::pool::adopt(pool);
}

hcamem_options defaults() {
    hcamem_options options{};
    hcamem_options_init(&options, sizeof options);
    return options;
}

} // namespace

hcamem::pool make_pool() {
    return made_with(defaults());
}

hcamem::pool make_pool(std::uint64_t growth, std::uint64_t maximum) {
    hcamem_options options = defaults();
    options.growth = growth;
    options.maximum = maximum;
    return made_with(options);
}

} // namespace bench
