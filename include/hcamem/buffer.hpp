// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_BUFFER_HPP
#define HCAMEM_BUFFER_HPP

#include <cstddef>
#include <span>
#include <utility>

#include <infiniband/verbs.h>

#include <hcamem/binding.hpp>
#include <hcamem/pool.hpp>

namespace hcamem {

/// A block of a pool that gives itself back. Move-only; holds a handle of the pool.
class buffer {
  public:
    /// As pool::allocate(bytes, align), with the same exceptions.
    buffer(pool from, std::size_t bytes, std::size_t align = 0)
        : pool_(std::move(from)), data_(pool_.allocate(bytes, align)), size_(bytes) {}

    buffer(buffer&& other) noexcept
        : pool_(std::move(other.pool_)),
          data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)) {}
    buffer& operator=(buffer&& other) noexcept {
        buffer(std::move(other)).swap(*this);
        return *this;
    }
    buffer(const buffer&) = delete;
    buffer& operator=(const buffer&) = delete;
    ~buffer() { pool_.deallocate(data_); }

    void swap(buffer& other) noexcept {
        std::swap(pool_, other.pool_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }

    /// Address; nullptr after release() or a move.
    [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
    /// The bytes that were asked for.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::span<std::byte> span() const noexcept { return {data(), size_}; }

    /// A scatter/gather entry of the whole buffer. Throws as binding::sge().
    [[nodiscard]] ibv_sge sge(const binding& in) const { return in.sge(data_, size_); }

    /// Hands the block to the caller, who gives it to deallocate() of get_pool().
    [[nodiscard]] void* release() noexcept {
        size_ = 0;
        return std::exchange(data_, nullptr);
    }

    [[nodiscard]] const pool& get_pool() const noexcept { return pool_; }

  private:
    pool pool_;
    void* data_;
    std::size_t size_;
};

inline buffer pool::make_buffer(std::size_t bytes, std::size_t align) {
    return {*this, bytes, align};
}

} // namespace hcamem

#endif
