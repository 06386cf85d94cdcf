// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_SHARED_ALLOCATOR_HPP
#define HCAMEM_SHARED_ALLOCATOR_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include <boost/interprocess/offset_ptr.hpp>

#include <hcamem/detail/shared_segment.hpp>
#include <hcamem/error.hpp>
#include <hcamem/shared.h>

namespace hcamem {

/// Standard allocator over a shared heap: for containers that lie in it themselves, made by
/// shared_heap::construct(), and are used by all its processes. Its pointers are offset_ptr,
/// so the containers must be able to work with such pointers: those of Boost.Container are
/// (boost::container::vector, map, string ...), std::vector too, but not std::map and std::list.
///
/// Allocating takes the heap's lock, also for many calls on one container: a container
/// that several processes change needs shared_heap::lock() around the whole change.
template <class T>
class shared_allocator { // NOLINT(cppcoreguidelines-special-member-functions): see the copies
  public:
    using value_type = T;
    using pointer = boost::interprocess::offset_ptr<T>;
    using const_pointer = boost::interprocess::offset_ptr<const T>;
    using void_pointer = boost::interprocess::offset_ptr<void>;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::false_type;

    shared_allocator() = delete; // there is no heap to take by default
    explicit shared_allocator(detail::shared_segment* segment) noexcept : segment_(segment) {}
    // Copies only: a container that was moved from keeps an allocator it can use.
    shared_allocator(const shared_allocator&) noexcept = default;
    shared_allocator& operator=(const shared_allocator&) noexcept = default;
    ~shared_allocator() = default;
    template <class U>
    shared_allocator(const shared_allocator<U>& of) noexcept // NOLINT(google-explicit-constructor)
        : segment_(of.segment()) {}

    /// Throws exhausted; std::bad_array_new_length if n * sizeof(T) overflows; error as
    /// shared_heap::lock().
    [[nodiscard]] pointer allocate(size_type n) {
        if (n > PTRDIFF_MAX / sizeof(T)) {
            throw std::bad_array_new_length();
        }
        const detail::shared_lock held(detail::heap_of(segment_.get()));
        return static_cast<T*>(detail::allocate(*segment_, n * sizeof(T), alignof(T)));
    }

    /// In a heap that is poisoned nothing is given back.
    void deallocate(const pointer& block, size_type /*n*/) noexcept {
        hcamem_shared* const heap = hcamem_shared_find(segment_.get());
        if (heap != nullptr && hcamem_shared_lock(heap, -1) == 0) {
            segment_->deallocate(block.get());
            hcamem_shared_unlock(heap);
        }
    }

    [[nodiscard]] detail::shared_segment* segment() const noexcept { return segment_.get(); }

    template <class U>
    friend bool operator==(const shared_allocator& a, const shared_allocator<U>& b) noexcept {
        return a.segment() == b.segment();
    }

  private:
    boost::interprocess::offset_ptr<detail::shared_segment> segment_;
};

} // namespace hcamem

#endif
