// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The blocks of one size class that lie in one arena's spans.
#ifndef HCAMEM_HEAP_CLASS_HEAP_H
#define HCAMEM_HEAP_CLASS_HEAP_H

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "heap/page_heap.h"
#include "os/short_mutex.h"

namespace hcamem::core {

/// What came of giving blocks back.
struct returned_blocks {
    std::size_t counted = 0;     // went to heaps that drain
    const void* twice = nullptr; // one of them was given back before
};

class alignas(64) class_heap {
  public:
    /// Also makes one usable again that drained.
    void init(page_heap& pages, std::size_t arena, std::size_t class_index) noexcept;

    /// Up to n blocks; fewer where the page heap has no room, none once draining. One that is
    /// live is left out, and told in `twice`: two threads gave it back at once, and it came out
    /// again in between.
    [[nodiscard]] std::size_t take(cached_block* blocks, std::size_t n,
                                   const void*& twice) noexcept;

    /// A span with free blocks becomes this heap's; false: there is none. Of the same class.
    bool take_over_span(class_heap& from) noexcept;

    /// Gives back blocks of this class, up to the first one that lies in another arena's span;
    /// how many. result: what it was before, and what came of these.
    std::size_t put(const cached_block* blocks, std::size_t n, returned_blocks& result) noexcept;

    /// Gives the pages of a span that is kept although it is empty back to the page heap.
    void release_idle() noexcept;

    /// From now on take() fails and put() counts. Returns the live blocks, modulo 2^64: where a
    /// span was taken over, blocks were taken out of one heap and come back to another, so only
    /// the sum over a class's heaps tells something. live() too, while all of them are held.
    std::uint64_t drain() noexcept;

    using held = std::unique_lock<short_mutex>;
    [[nodiscard]] held hold() noexcept { return held(lock_); }
    [[nodiscard]] std::uint64_t live(const held& /*of_this*/) const noexcept { return live_; }

  private:
    [[nodiscard]] void* take_from(std::uint32_t first) noexcept;
    bool add_spans(std::size_t blocks) noexcept;
    bool put_into(std::uint32_t first, const void* address, std::uint32_t& emptied) noexcept;
    void push(std::uint32_t first) noexcept;
    void remove(std::uint32_t first) noexcept;

    short_mutex lock_; // guards all below, and what span.h says
    page_heap* pages_ = nullptr;
    std::uint16_t arena_ = 0;
    std::uint16_t class_index_ = 0;
    std::uint32_t partial_ = no_page; // spans with live and with free blocks
    std::uint32_t idle_ = no_page;    // one span without live blocks, kept for the next call
    bool draining_ = true;
    std::uint64_t live_ = 0;
};

} // namespace hcamem::core

#endif
