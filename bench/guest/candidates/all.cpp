// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "candidates/anonymous.hpp"
#include "candidates/candidate.hpp"
#include "candidates/hcamem.hpp"
#include "candidates/kernel_buffers.hpp"

namespace bench {

candidates make_candidates(const support::Pd& pd, const std::string& hca) {
    const std::uint32_t driver_id = support::Node(hca).info().driver_id;
    candidates all;
    all.push_back(std::make_unique<malloc_candidate>(pd));
    all.push_back(std::make_unique<thp_candidate>(pd));
    all.push_back(std::make_unique<hugetlb_candidate>(pd));
    all.push_back(std::make_unique<udmabuf_candidate>(pd, driver_id));
    all.push_back(std::make_unique<dma_heap_candidate>(pd, driver_id));
    all.push_back(std::make_unique<huge_candidate>(pd, hca));
    all.push_back(std::make_unique<pages_candidate>(pd, hca));
    all.push_back(std::make_unique<pool_candidate>(pd, hca));
    return all;
}

} // namespace bench
