// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_BUFFER_POOL_HPP
#define HCAMEM_BUFFER_POOL_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <hcamem.h>
#include <hcamem/detail/fixed_head.hpp>
#include <hcamem/error.hpp>
#include <hcamem/exhausted.hpp>
#include <hcamem/pool.hpp>

namespace hcamem {

/// Buffers of one size with dense numbers, e.g. for eager messages: hcamem_fixed_create().
/// Getting and putting one is inlined. All members but moving and destruction may be called
/// from any thread. Buffers that are out when it is destroyed stay usable, but can no longer
/// be put: their memory stays until the process ends.
class buffer_pool {
  public:
    /// `max` buffers of `bytes` bytes, `reserved` of them only for get_reserved(). `align`: a
    /// power of two up to 2 MiB, 0 means 64. Throws exhausted; error for anything else.
    buffer_pool(pool from, std::size_t bytes, std::uint32_t max, std::uint32_t reserved = 0,
                std::size_t align = 0)
        : from_(std::move(from)),
          handle_(hcamem_fixed_create(from_.c_handle(), bytes, align, max, reserved)),
          bytes_(bytes),
          max_(max) {
        if (handle_ == nullptr) {
            const int reason = errno;
            if (exhausted::is(reason)) {
                throw exhausted(reason);
            }
            throw error(reason);
        }
        head_ = *reinterpret_cast<const detail::fixed_head*>(handle_);
    }

    buffer_pool(buffer_pool&& other) noexcept
        : from_(std::move(other.from_)),
          head_(std::exchange(other.head_, {})),
          handle_(std::exchange(other.handle_, nullptr)),
          bytes_(other.bytes_),
          max_(other.max_) {}
    buffer_pool& operator=(buffer_pool&& other) noexcept {
        std::swap(from_, other.from_);
        std::swap(head_, other.head_);
        std::swap(handle_, other.handle_);
        std::swap(bytes_, other.bytes_);
        std::swap(max_, other.max_);
        return *this;
    }
    buffer_pool(const buffer_pool&) = delete;
    buffer_pool& operator=(const buffer_pool&) = delete;
    ~buffer_pool() { hcamem_fixed_destroy(handle_); }

    /// A buffer; nullptr: all but the reserve are out, errno is ENOBUFS.
    [[nodiscard]] void* get() noexcept {
        void* buffer = nullptr;
        return head_.get(buffer) ? buffer : hcamem_fixed_get(handle_, 0);
    }

    /// The same, if no other is free one of the reserve; nullptr: all are out.
    [[nodiscard]] void* get_reserved() noexcept {
        void* buffer = nullptr;
        return head_.get(buffer) ? buffer : hcamem_fixed_get(handle_, 1);
    }

    /// Puts a buffer back; nullptr is fine. Misuse: hcamem.h.
    void put(void* buffer) noexcept {
        const auto is_out = [](std::uint8_t /*state*/) { return false; }; // the library looks
        if (!head_.put(handle_, buffer, is_out)) [[unlikely]] {
            hcamem_fixed_put(handle_, buffer);
        }
    }

    /// Fills `buffers`: all, or none and false.
    [[nodiscard]] bool get_n(std::span<void*> buffers) noexcept {
        return hcamem_fixed_get_n(handle_, buffers.data(), buffers.size(), 0) == 0;
    }

    /// Puts all of them back; entries that are nullptr are skipped.
    void put_n(std::span<void* const> buffers) noexcept {
        hcamem_fixed_put_n(handle_, buffers.data(), buffers.size());
    }

    /// The number of a buffer, 0 ... max() - 1; UINT32_MAX: it is not one of these.
    [[nodiscard]] std::uint32_t index(const void* buffer) const noexcept {
        std::size_t number = 0;
        return head_.find(buffer, number) && number < max_ ? static_cast<std::uint32_t>(number)
                                                           : UINT32_MAX;
    }

    /// The buffer of a number; nullptr: there are not so many.
    [[nodiscard]] void* at(std::uint32_t number) const noexcept {
        return hcamem_fixed_at(handle_, number);
    }

    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::uint32_t max() const noexcept { return max_; }

    /// The pool that the memory comes from, e.g. to attach it to a protection domain.
    [[nodiscard]] pool& owner() noexcept { return from_; }

    /// For the C interface. Not to be destroyed.
    [[nodiscard]] hcamem_fixed* c_handle() const noexcept { return handle_; }

  private:
    pool from_;
    detail::fixed_head head_; // a copy: what does not change while handle_ lives
    hcamem_fixed* handle_ = nullptr;
    std::size_t bytes_ = 0;
    std::uint32_t max_ = 0;
};

} // namespace hcamem

#endif
