// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What a pool does with each block for who looks for a fault of the program, if it was
// asked to: at that price. Such a pool has no caches, so that each block passes here.
//
//   poison    a free block is full of a pattern, and must still be when it is handed out
//   log       where each live block was allocated
//   valgrind  is told of each block, if the program runs under it
#ifndef HCAMEM_CHECK_BLOCK_CHECKS_H
#define HCAMEM_CHECK_BLOCK_CHECKS_H

#include <cstddef>
#include <cstdint>
#include <memory>

#include "check/allocation_log.h"

namespace hcamem::core {

class block_checks {
  public:
    /// flags: HCAMEM_OPT_*. -ENOMEM with a message.
    int open(std::uint32_t flags) noexcept;
    void close() noexcept;

    [[nodiscard]] bool any() const noexcept { return poison_ || valgrind_ || log_ != nullptr; }
    [[nodiscard]] allocation_log* log() const noexcept { return log_.get(); }

    /// Memory that is to be cut into blocks.
    void add_memory(void* memory, std::size_t bytes) const noexcept;

    /// Before a block is in the program's hands. False: it was written to while it was free,
    /// first at *where.
    [[nodiscard]] bool hand_out(void* block, std::size_t bytes, const void*& where) const noexcept;
    /// When it no longer is.
    void take_back(void* block, std::size_t bytes) const noexcept;
    /// A block that is in hands of the library's, to be cut into buffers: each of those is
    /// handed out and taken back as a block.
    void divide(void* block, std::size_t bytes) const noexcept;
    void unite(void* block, std::size_t bytes) const noexcept;

  private:
    bool poison_ = false;
    bool valgrind_ = false;
    std::unique_ptr<allocation_log> log_;
};

} // namespace hcamem::core

#endif
