// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What <hcamem/shared_heap.hpp> and <hcamem/shared_allocator.hpp> have in common: Boost's
// heap as it lies in the memory, without locks of its own, and the lock around it.
#ifndef HCAMEM_DETAIL_SHARED_SEGMENT_HPP
#define HCAMEM_DETAIL_SHARED_SEGMENT_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include <boost/interprocess/indexes/iset_index.hpp>
#include <boost/interprocess/managed_external_buffer.hpp>
#include <boost/interprocess/mem_algo/rbtree_best_fit.hpp>
#include <boost/interprocess/sync/mutex_family.hpp>
#include <boost/version.hpp>

#include <hcamem.h>
#include <hcamem/error.hpp>
#include <hcamem/exhausted.hpp>
#include <hcamem/shared.h>

namespace hcamem::detail {

using shared_buffer = boost::interprocess::basic_managed_external_buffer<
    char, boost::interprocess::rbtree_best_fit<boost::interprocess::null_mutex_family>,
    boost::interprocess::iset_index>;
using shared_segment = shared_buffer::segment_manager;

/// Programs whose numbers differ would not understand one another's memory.
inline constexpr std::uint64_t shared_layout =
    std::uint64_t{BOOST_VERSION} << 32 | std::uint64_t{sizeof(shared_segment)} << 16 | 1;

/// The heap's lock, held while this lives. Throws error if it is not to be had.
class shared_lock {
  public:
    explicit shared_lock(hcamem_shared* heap, int timeout_ms = -1) : heap_(heap) {
        const int result = hcamem_shared_lock(heap, timeout_ms);
        if (result != 0) {
            throw error(result);
        }
    }
    shared_lock(const shared_lock&) = delete;
    shared_lock& operator=(const shared_lock&) = delete;
    shared_lock(shared_lock&&) = delete;
    shared_lock& operator=(shared_lock&&) = delete;
    ~shared_lock() { hcamem_shared_unlock(heap_); }

  private:
    hcamem_shared* heap_;
};

/// The heap in whose memory the segment lies. Throws error: this process has closed it.
inline hcamem_shared* heap_of(const shared_segment* segment) {
    hcamem_shared* const heap = hcamem_shared_find(segment);
    if (heap == nullptr) {
        throw error(EBADF, "the allocator's shared heap is closed in this process");
    }
    return heap;
}

/// Under the lock. Throws exhausted, or error: EINVAL align.
inline void* allocate(shared_segment& segment, std::size_t bytes, std::size_t align) {
    if (align == 0 || (align & (align - 1)) != 0 || align > HCAMEM_SLAB_UNIT) {
        throw error(EINVAL,
                    "alignment " + std::to_string(align) + " is not a power of two up to 2 MiB");
    }
    void* const block =
        bytes < segment.get_size() ? segment.allocate_aligned(bytes, align, std::nothrow) : nullptr;
    if (block == nullptr) {
        throw exhausted(
            ENOMEM, "the shared heap has no " + std::to_string(bytes) +
                        " bytes in one piece: " + std::to_string(segment.get_free_memory()) +
                        " of " + std::to_string(segment.get_size()) + " are free; make it larger");
    }
    return block;
}

} // namespace hcamem::detail

#endif
