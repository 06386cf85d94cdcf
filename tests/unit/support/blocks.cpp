// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "support/blocks.hpp"

#include <gtest/gtest.h>

namespace unit {

std::vector<void*> allocate_all(hcamem_pool* pool, std::size_t bytes, std::size_t at_most) {
    std::vector<void*> all;
    while (all.size() < at_most) {
        void* const block = hcamem_alloc(pool, bytes, 0, 0);
        if (block == nullptr) {
            break;
        }
        all.push_back(block);
    }
    return all;
}

void free_all(hcamem_pool* pool, const std::vector<void*>& all) {
    for (void* block : all) {
        ASSERT_EQ(hcamem_free(pool, block), 0);
    }
}

} // namespace unit
