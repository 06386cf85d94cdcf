// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Our memory: regions of the device in both mapping modes, and a pool over them.
#ifndef BENCH_GUEST_HCAMEM_HPP
#define BENCH_GUEST_HCAMEM_HPP

#include <hcamem.h>

#include "candidates/mapped.hpp"
#include "support/node.hpp"

namespace bench {

/// `huge` mapping, registered as a dma-buf.
class huge_candidate final : public dmabuf_candidate {
  public:
    huge_candidate(const support::Pd& pd, const std::string& hca);
    std::byte* obtain(std::size_t bytes) override;

  protected:
    support::UniqueFd dmabuf(std::uint64_t& offset) override;

  private:
    support::Node node_;
};

/// `pages` mapping, registered by ibv_reg_mr().
class pages_candidate final : public pinned_candidate {
  public:
    pages_candidate(const support::Pd& pd, const std::string& hca);
    std::byte* obtain(std::size_t bytes) override;

  private:
    support::Node node_;
};

/// A block of a pool that has it already, with the key of its slab.
class pool_candidate final : public candidate {
  public:
    pool_candidate(const support::Pd& pd, std::string hca);
    ~pool_candidate() override;

    void prepare(std::size_t bytes) override;
    void finish() override;
    std::byte* obtain(std::size_t bytes) override;
    keys enroll() override;
    void withdraw() override {}
    void release() override;

  private:
    const support::Pd& pd_;
    std::string hca_;
    hcamem_pool* pool_ = nullptr;
    hcamem_binding* binding_ = nullptr;
    void* block_ = nullptr;
};

} // namespace bench

#endif
