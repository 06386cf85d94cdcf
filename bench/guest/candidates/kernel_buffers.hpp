// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// dma-bufs that the kernel offers without hcamem.
#ifndef BENCH_GUEST_KERNEL_BUFFERS_HPP
#define BENCH_GUEST_KERNEL_BUFFERS_HPP

#include "candidates/mapped.hpp"

namespace bench {

/// Pages of a memfd, made a dma-buf by /dev/udmabuf.
class udmabuf_candidate final : public dmabuf_candidate {
  public:
    udmabuf_candidate(const support::Pd& pd, std::uint32_t driver_id);
    void prepare(std::size_t bytes) override;
    std::byte* obtain(std::size_t bytes) override;
    void release() override;

  protected:
    support::UniqueFd dmabuf(std::uint64_t& offset) override;

  private:
    support::UniqueFd device_;
    support::UniqueFd memory_;
};

/// /dev/dma_heap/system.
class dma_heap_candidate final : public dmabuf_candidate {
  public:
    dma_heap_candidate(const support::Pd& pd, std::uint32_t driver_id);
    std::byte* obtain(std::size_t bytes) override;
    void release() override;

  protected:
    support::UniqueFd dmabuf(std::uint64_t& offset) override;

  private:
    support::UniqueFd heap_;
    support::UniqueFd memory_;
};

} // namespace bench

#endif
