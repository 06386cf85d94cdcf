// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "candidates/hcamem.hpp"

#include <utility>

#include <sys/mman.h>

#include "support/failure.hpp"
#include "support/guest.hpp"

namespace bench {
namespace {

std::byte* map_region(const support::Node& node, std::size_t bytes, hcamem_mapping mapping) {
    hcamem_create request = support::create_request(bytes, {mapping, HCAMEM_FORK_POLICY_ZERO});
    if (const int error = node.try_create(request)) {
        support::fail("HCAMEM_IOC_CREATE", error);
    }
    return map(bytes, MAP_SHARED, node.fd(), static_cast<std::int64_t>(request.offset));
}

} // namespace

huge_candidate::huge_candidate(const support::Pd& pd, const std::string& hca)
    : dmabuf_candidate("hcamem, huge + dma-buf", pd, support::Node(hca).info().driver_id),
      node_(hca) {}

std::byte* huge_candidate::obtain(std::size_t bytes) {
    data_ = map_region(node_, bytes, HCAMEM_MAPPING_HUGE);
    bytes_ = bytes;
    return data_;
}

support::UniqueFd huge_candidate::dmabuf(std::uint64_t& offset) {
    return node_.export_range(data_, bytes_, &offset);
}

pages_candidate::pages_candidate(const support::Pd& pd, const std::string& hca)
    : pinned_candidate("hcamem, pages + ibv_reg_mr", pd), node_(hca) {}

std::byte* pages_candidate::obtain(std::size_t bytes) {
    data_ = map_region(node_, bytes, HCAMEM_MAPPING_PAGES);
    bytes_ = mapped_ = bytes;
    return data_;
}

pool_candidate::pool_candidate(const support::Pd& pd, std::string hca)
    : candidate("hcamem pool"), pd_(pd), hca_(std::move(hca)) {}

pool_candidate::~pool_candidate() {
    pool_candidate::finish();
}

void pool_candidate::prepare(std::size_t bytes) {
    hcamem_options options{};
    hcamem_options_init(&options, sizeof options);
    options.source = HCAMEM_DEVICE;
    options.mapping = HCAMEM_MAP_HUGE;
    options.flags |= HCAMEM_OPT_DMABUF_ONLY | HCAMEM_OPT_PREFAULT;
    options.initial = 0;
    options.hca = hca_.c_str();
    int error = hcamem_pool_create(&options, &pool_);
    if (error == 0) {
        error = hcamem_attach(pool_, pd_.get(), support::remote_access, &binding_);
    }
    if (error != 0) {
        support::fail(hcamem_last_message(), -error);
    }
    // From now on the pool has a slab with the block, and this thread its cache.
    for (int times = 0; times < 2; ++times) {
        obtain(bytes);
        release();
    }
}

void pool_candidate::finish() {
    if (binding_ != nullptr) {
        hcamem_detach(std::exchange(binding_, nullptr));
    }
    if (pool_ != nullptr) {
        hcamem_pool_close(std::exchange(pool_, nullptr));
    }
}

std::byte* pool_candidate::obtain(std::size_t bytes) {
    block_ = hcamem_alloc(pool_, bytes, 0, 0);
    if (block_ == nullptr) {
        support::fail(hcamem_last_message());
    }
    return static_cast<std::byte*>(block_);
}

keys pool_candidate::enroll() {
    return {hcamem_lkey(binding_, block_), hcamem_rkey(binding_, block_)};
}

void pool_candidate::release() {
    if (const int error = hcamem_free(pool_, std::exchange(block_, nullptr))) {
        support::fail("hcamem_free", -error);
    }
}

} // namespace bench
