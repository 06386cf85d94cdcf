// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The memory of a shared heap in one process: its address range there, and the dma-buf
// or memfd by which others map the same memory.
#ifndef HCAMEM_SHARED_SHARED_MEMORY_H
#define HCAMEM_SHARED_SHARED_MEMORY_H

#include <cstddef>
#include <cstdint>

#include <hcamem.h>

#include "os/file.h"
#include "os/mapping.h"
#include "shared/control.h"
#include "source/exporter.h"

namespace hcamem::core {

class shared_memory final : public exporter {
  public:
    /// Obtains it and fills in what the memory decides of the traits. 0, or -errno with a message.
    int create(const hcamem_options& options, std::size_t bytes, heap_traits& traits);

    /// Maps another process's, by its descriptor, which stays the caller's. -EBADMSG with a
    /// message: it is not what the traits say; -EXDEV: it is another heap's.
    int join(int descriptor, const heap_traits& traits) noexcept;

    void close() noexcept;

    [[nodiscard]] std::byte* data() const noexcept { return range_.data(); }
    [[nodiscard]] int descriptor() const noexcept { return file_.descriptor(); }

    int export_dmabuf(const void* address, std::size_t bytes,
                      std::uint64_t& offset) noexcept override;
    [[nodiscard]] bool can_export() const noexcept override { return is_dmabuf_; }
    [[nodiscard]] bool pinnable() const noexcept override { return pinnable_; }

  private:
    int reserve(std::size_t bytes) noexcept;

    mapping range_; // aligned to slab_unit in every process, so that alignment is the same in all
    file file_;
    bool is_dmabuf_ = false;
    bool pinnable_ = false;
};

} // namespace hcamem::core

#endif
