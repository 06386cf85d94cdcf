// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_SOURCE_SOURCE_H
#define HCAMEM_SOURCE_SOURCE_H

#include <cstddef>
#include <cstdint>
#include <memory>

#include <hcamem.h>

#include "os/file.h"
#include "source/exporter.h"

namespace hcamem::core {

/// Where slabs come from. Calls may be made from any thread at once.
class source : public exporter {
  public:
    /// Maps `bytes` of zeroed memory at `address`, replacing what is mapped there; both
    /// are multiples of slab_unit. 0, or -errno with a message; the range may then be
    /// unmapped.
    virtual int map(void* address, std::size_t bytes) noexcept = 0;

    /// The same, as memory that other processes can map by its descriptor: a dma-buf, or a
    /// sealed memfd. The source was opened with fork policy HCAMEM_FORK_SHARE.
    virtual int map_shared(void* address, std::size_t bytes, file& memory) noexcept = 0;

    /// A node of its own that reads events without waiting; no file where there are none.
    /// 0, or -errno with a message.
    virtual int open_events(file& opened) noexcept = 0;

    /// HCAMEM_DEVICE or HCAMEM_MEMORY.
    [[nodiscard]] virtual std::uint32_t kind() const noexcept = 0;

    /// HCAMEM_MAP_HUGE or HCAMEM_MAP_PAGES.
    [[nodiscard]] virtual std::uint32_t mapping() const noexcept = 0;
};

/// The source that the options ask for. 0, or -errno with a message.
int open_source(const hcamem_options& options, std::unique_ptr<source>& opened);

int open_device_source(const hcamem_options& options, std::unique_ptr<source>& opened);
int open_memory_source(const hcamem_options& options, std::unique_ptr<source>& opened);

} // namespace hcamem::core

#endif
