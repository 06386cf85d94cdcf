// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Address ranges of the library's own: the range that slabs are mapped into, and
// tables that are as long as that range but present only where they were touched.
#ifndef HCAMEM_OS_MAPPING_H
#define HCAMEM_OS_MAPPING_H

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hcamem::core {

/// Owns a range of addresses.
class mapping {
  public:
    mapping() noexcept = default;
    mapping(mapping&& other) noexcept
        : address_(std::exchange(other.address_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    mapping& operator=(mapping&& other) noexcept {
        std::swap(address_, other.address_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    mapping(const mapping&) = delete;
    mapping& operator=(const mapping&) = delete;
    ~mapping() { reset(); }

    /// Zero-filled memory that is present where it was touched. -ENOMEM with a message.
    /// wipe_in_child: a child of fork() finds zeros.
    int make_table(std::size_t bytes, bool wipe_in_child = false) noexcept;

    /// Addresses without memory, aligned to `align`. -ENOMEM with a message.
    int reserve(std::size_t bytes, std::size_t align) noexcept;

    /// The file's first `bytes` bytes, shared with whoever maps it. -errno with a message.
    int map_shared(int descriptor, std::size_t bytes) noexcept;

    void reset() noexcept;

    /// Gives up the addresses up to `end`, and unmaps those before `begin`: what lies
    /// between is another's.
    void leave_out(std::byte* begin, std::byte* end) noexcept;

    [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(address_); }
    [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

    template <class T>
    [[nodiscard]] T* as() const noexcept {
        return static_cast<T*>(address_);
    }

  private:
    void* address_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Has every page of fresh memory present. It holds zeros.
void make_present(std::byte* begin, std::size_t bytes) noexcept;

/// Zero-filled memory that a child of fork() finds zeroed. nullptr: no memory, or a kernel
/// without MADV_WIPEONFORK (before 4.14), where nothing can be safe.
void* map_wiped(std::size_t bytes) noexcept;

/// Replaces whatever is mapped at the range by a reservation, in one step. False: what
/// was there stays.
bool unmap_to_reserved(void* address, std::size_t bytes) noexcept;

/// After a mmap(MAP_FIXED) into a reservation failed: kernels may have unmapped the range
/// already. Reserves it again; false if another mapping of the process took it meanwhile.
bool restore_reserved(void* address, std::size_t bytes) noexcept;

} // namespace hcamem::core

#endif
