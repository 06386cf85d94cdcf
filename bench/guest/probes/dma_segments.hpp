// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_GUEST_DMA_SEGMENTS_HPP
#define BENCH_GUEST_DMA_SEGMENTS_HPP

#include <cstdint>
#include <string>

namespace bench {

/// How many segments the HCA is given per registration: what ib_umem_get() returns for pinned
/// pages, and dma_buf_map_attachment() for a dma-buf. Needs the kernel's type information (BTF) and
/// return probes that use it, so 6.12 or so; throws otherwise.
class dma_segments {
  public:
    dma_segments();
    dma_segments(const dma_segments&) = delete;
    dma_segments& operator=(const dma_segments&) = delete;
    dma_segments(dma_segments&&) = delete;
    dma_segments& operator=(dma_segments&&) = delete;
    ~dma_segments();

    void clear();
    /// Of all registrations since the start or clear().
    [[nodiscard]] std::uint64_t value() const;

  private:
    void remove() noexcept;

    std::string group_;
    std::string instance_;
};

} // namespace bench

#endif
