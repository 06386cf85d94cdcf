// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The blocks of all size classes, in arenas: each has spans of its own, and a thread takes
// blocks out of one arena's. What says whether a block is live lies beside that of its
// neighbours, and so do the free bits of a span: threads that took blocks out of one span
// would pass those cache lines to and fro with each block.
//
// A thread goes to another arena's spans before the pool grows, so all of a pool can be had.
#ifndef HCAMEM_HEAP_ARENAS_H
#define HCAMEM_HEAP_ARENAS_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "heap/class_heap.h"
#include "heap/page_heap.h"

namespace hcamem::core {

class arenas {
  public:
    /// Also makes them usable again that drained.
    void init(page_heap& pages) noexcept;

    /// Up to n blocks of a class, best of that arena; fewer where the page heap has no room,
    /// none once draining. twice: as class_heap.
    [[nodiscard]] std::size_t take(std::size_t arena, std::size_t class_index, cached_block* blocks,
                                   std::size_t n, const void*& twice) noexcept;

    /// Gives back blocks of one class, to the arenas whose spans they lie in.
    returned_blocks put(std::size_t class_index, const cached_block* blocks,
                        std::size_t n) noexcept;

    /// Gives the pages of spans that are kept although they are empty back to the page heap.
    void release_idle() noexcept;

    /// From now on take() fails and put() counts. Returns the live blocks.
    std::uint64_t drain() noexcept;

    /// Of a class.
    [[nodiscard]] std::uint64_t live(std::size_t class_index) noexcept;

  private:
    page_heap* pages_ = nullptr;
    std::array<std::array<class_heap, class_count>, arena_count> heaps_;
};

} // namespace hcamem::core

#endif
