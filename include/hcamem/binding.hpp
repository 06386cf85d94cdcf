// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_BINDING_HPP
#define HCAMEM_BINDING_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <infiniband/verbs.h>

#include <hcamem.h>
#include <hcamem/detail/binding_head.hpp>
#include <hcamem/error.hpp>
#include <hcamem/pool.hpp>

namespace hcamem {

/// A pool's registration with one protection domain for one set of access flags:
/// every slab, also one the pool grows by later, has a memory region there.
/// Detaches when destroyed, which must be before ibv_dealloc_pd(); it may outlive
/// the pool's handles. Look-ups are constant time, lock-free, from any thread.
class binding {
  public:
    binding() noexcept = default;

    /// Takes over a binding made by hcamem_attach().
    explicit binding(hcamem_binding* made) noexcept : handle_(made) {}

    binding(binding&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    binding& operator=(binding&& other) noexcept {
        binding(std::move(other)).swap(*this);
        return *this;
    }
    binding(const binding&) = delete;
    binding& operator=(const binding&) = delete;
    ~binding() { hcamem_detach(handle_); }

    void swap(binding& other) noexcept { std::swap(handle_, other.handle_); }

    /// Deregisters now. Throws error if a memory region is in use (a bound memory window);
    /// the binding is then unchanged.
    void detach() {
        const int result = hcamem_detach(handle_);
        if (result != 0) {
            throw error(result);
        }
        handle_ = nullptr;
    }

    /// Keys of the slab that holds the address; 0: in no slab of the pool.
    [[nodiscard]] std::uint32_t lkey(const void* address) const noexcept {
        return handle_ != nullptr ? head().lkey(address) : 0;
    }
    [[nodiscard]] std::uint32_t rkey(const void* address) const noexcept {
        return handle_ != nullptr ? head().rkey(address) : 0;
    }

    /// The registration that covers the address: keys, path, access, memory region.
    /// Throws error (EFAULT) if the address is in no slab of the pool.
    [[nodiscard]] hcamem_key key(const void* address) const {
        hcamem_key found{};
        const int result = hcamem_key_of(handle_, address, &found);
        if (result != 0) {
            throw error(result);
        }
        return found;
    }

    /// A scatter/gather entry for `bytes` bytes at `address`, e.g. any part of a block.
    /// Throws error: EFAULT the address is in no slab of the pool, EMSGSIZE the range leaves
    /// the slab or is too long for an entry.
    [[nodiscard]] ibv_sge sge(const void* address, std::size_t bytes) const {
        const std::uint32_t lkey_here = lkey(address);
        const auto* last = static_cast<const std::byte*>(address) + (bytes == 0 ? 0 : bytes - 1);
        if (lkey_here == 0 || bytes > UINT32_MAX || lkey(last) != lkey_here) {
            sge_failed(address, bytes);
        }
        return {reinterpret_cast<std::uint64_t>(address), static_cast<std::uint32_t>(bytes),
                lkey_here};
    }

    [[nodiscard]] hcamem_binding* c_handle() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

  private:
    [[nodiscard]] const detail::binding_head& head() const noexcept {
        return *reinterpret_cast<const detail::binding_head*>(handle_);
    }

    [[noreturn]] void sge_failed(const void* address, std::size_t bytes) const {
        static_cast<void>(key(address)); // throws with a message for a foreign address
        throw error(EMSGSIZE, "a scatter/gather entry of " + std::to_string(bytes) +
                                  " bytes is longer than the slab or 4 GiB");
    }

    hcamem_binding* handle_ = nullptr;
};

inline binding pool::attach(ibv_pd* pd, int access) {
    hcamem_binding* made = nullptr;
    const int result = hcamem_attach(c_handle(), pd, access, &made);
    if (result != 0) {
        throw error(result);
    }
    return binding(made);
}

} // namespace hcamem

#endif
