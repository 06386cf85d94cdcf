// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_GUEST_REGISTRATIONS_HPP
#define BENCH_GUEST_REGISTRATIONS_HPP

#include <cstdint>
#include <string>

namespace bench {

/// What the kernel does to register memory, seen by return probes: ib_umem_get() gives pinned
/// pages, dma_buf_map_attachment() a dma-buf, and then soft-RoCE fills a table of its own with an
/// entry per 4 KiB page. Needs the kernel's type information (BTF) in probes, so 6.12 or so; throws
/// otherwise.
class registrations {
  public:
    struct seen {
        std::uint64_t segments = 0;    // that the HCA is given
        std::uint64_t table_ticks = 0; // of the TSC, for soft-RoCE's table
    };

    registrations();
    registrations(const registrations&) = delete;
    registrations& operator=(const registrations&) = delete;
    registrations(registrations&&) = delete;
    registrations& operator=(registrations&&) = delete;
    ~registrations();

    void clear();
    /// Sums since the start or clear().
    [[nodiscard]] seen value() const;

  private:
    void remove() noexcept;

    std::string group_;
    std::string instance_;
};

} // namespace bench

#endif
