// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_ALLOCATOR_HPP
#define HCAMEM_ALLOCATOR_HPP

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include <hcamem/pool.hpp>

namespace hcamem {

/// Standard allocator over a pool, for any container. It holds a handle, so the
/// pool outlives the container. Equal iff the pool is the same; goes along on
/// move assignment and swap, not on copy assignment (the target keeps its pool).
/// Over-aligned types are fine up to 2 MiB.
template <class T>
class allocator { // NOLINT(cppcoreguidelines-special-member-functions): see the copies
  public:
    using value_type = T;
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::false_type;

    allocator() = delete; // there is no pool to take by default
    // Implicit, so that a container can be given the pool itself.
    allocator(pool from) noexcept // NOLINT(google-explicit-constructor)
        : pool_(std::move(from)) {}
    // Copies only: a container that was moved from keeps an allocator it can use.
    allocator(const allocator&) noexcept = default;
    allocator& operator=(const allocator&) noexcept = default;
    ~allocator() = default;
    template <class U>
    allocator(const allocator<U>& other) noexcept // NOLINT(google-explicit-constructor)
        : pool_(other.get_pool()) {}

    /// Throws exhausted, error, or std::bad_array_new_length if n * sizeof(T) overflows.
    [[nodiscard]] T* allocate(std::size_t n) {
        if (n > PTRDIFF_MAX / sizeof(T)) {
            throw std::bad_array_new_length();
        }
        return static_cast<T*>(pool_.allocate(n * sizeof(T), align));
    }

    void deallocate(T* block, std::size_t n) noexcept {
        pool_.deallocate(block, n * sizeof(T), align);
    }

    [[nodiscard]] const pool& get_pool() const noexcept { return pool_; }

    template <class U>
    friend bool operator==(const allocator& a, const allocator<U>& b) noexcept {
        return a.get_pool() == b.get_pool();
    }

  private:
    // All blocks are aligned to 64, and asking for less has no effect but to cost.
    static constexpr std::size_t align = alignof(T) <= 64 ? 0 : alignof(T);

    pool pool_;
};

} // namespace hcamem

#endif
