// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_SOURCE_EXPORTER_H
#define HCAMEM_SOURCE_EXPORTER_H

#include <cstddef>
#include <cstdint>

namespace hcamem::core {

/// What registration has to know of memory. Calls may be made from any thread at once.
class exporter {
  public:
    exporter() = default;
    exporter(const exporter&) = delete;
    exporter& operator=(const exporter&) = delete;
    exporter(exporter&&) = delete;
    exporter& operator=(exporter&&) = delete;
    virtual ~exporter() = default;

    /// A dma-buf of the pages that the range, which lies in one slab, touches: its
    /// close-on-exec descriptor and where `address` lies in it; or -errno with a message.
    virtual int export_dmabuf(const void* address, std::size_t bytes,
                              std::uint64_t& offset) noexcept = 0;

    [[nodiscard]] virtual bool can_export() const noexcept = 0;

    /// Whether get_user_pages(), and so ibv_reg_mr(), takes these mappings.
    [[nodiscard]] virtual bool pinnable() const noexcept = 0;
};

} // namespace hcamem::core

#endif
