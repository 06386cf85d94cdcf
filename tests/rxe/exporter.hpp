// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Three exporters of dma-bufs, so that the importer is not shown to work with one only.
#ifndef TESTS_RXE_EXPORTER_HPP
#define TESTS_RXE_EXPORTER_HPP

#include <cstddef>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "support/unique_fd.hpp"

namespace rxe {

enum class ExporterKind {
    udmabuf, // a memfd: scattered single pages
    heap,    // the system heap: large pieces
    hcamem,  // the module
};

std::ostream& operator<<(std::ostream& out, ExporterKind kind);

/// Those that the running kernel has.
std::vector<ExporterKind> exporters();

/// A dma-buf and a view of its memory.
class Exporter {
  public:
    Exporter(ExporterKind kind, std::size_t size);
    Exporter(const Exporter&) = delete;
    Exporter& operator=(const Exporter&) = delete;
    ~Exporter();

    [[nodiscard]] int fd() const { return dma_buf_.get(); }
    [[nodiscard]] std::span<unsigned char> memory() const { return {memory_, size_}; }
    /// Lets go of the dma-buf and of the memory, but for what others hold.
    void drop();

  private:
    std::size_t size_;
    support::UniqueFd source_;
    support::UniqueFd dma_buf_;
    unsigned char* memory_ = nullptr;
};

/// How many dma-bufs there are in the whole system, from debugfs.
std::size_t dma_bufs();

} // namespace rxe

#endif
