// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A pool's or shared heap's registrations in one protection domain for one set of access flags.
// Look-up is one load from a table with an entry per slab_unit of the pool's
// range. A child of fork() finds the table zeroed, and so no keys.
#ifndef HCAMEM_POOL_BINDING_H
#define HCAMEM_POOL_BINDING_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <hcamem/detail/binding_head.hpp>

#include "heap/size_class.h"
#include "os/mapping.h"
#include "pool/handles.h"
#include "pool/slab_table.h"
#include "verbs/registrar.h"

namespace hcamem::core {

class binding;

/// Who made a binding: a pool or a shared heap.
class binding_owner {
  public:
    binding_owner() = default;
    binding_owner(const binding_owner&) = delete;
    binding_owner& operator=(const binding_owner&) = delete;
    binding_owner(binding_owner&&) = delete;
    binding_owner& operator=(binding_owner&&) = delete;
    virtual ~binding_owner() = default;

    /// Deregisters and ends one of its bindings. 0, or -errno with a message.
    virtual int detach(binding& ended) noexcept = 0;
};

class binding : public detail::binding_head, public handle<binding> {
  public:
    // -- any thread --
    /// False: no registered slab holds the address.
    bool find(const void* address, hcamem_key& key) const noexcept;

    [[nodiscard]] binding_owner* owner() const noexcept { return owner_; }
    [[nodiscard]] std::uint64_t generation() const noexcept {
        return generation_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] bool misuse_is_error() const noexcept { return misuse_is_error_; }

    // -- the owner's lock of its bindings is held --
    struct place {
        binding_owner* owner;
        std::byte* base;
        std::size_t bytes;
        std::uint64_t generation;
        bool misuse_is_error;
    };
    /// -ENOMEM with a message.
    int open(const place& where, std::unique_ptr<registrar> with) noexcept;
    void close() noexcept;

    int add(const slab& added, exporter& from) noexcept;
    /// 0 also where the slab is not registered here.
    int remove(const slab& removed) noexcept;
    [[nodiscard]] std::size_t mrs() const noexcept { return mrs_; }

    binding* next = nullptr; // in the owner's list

  private:
    void publish(const slab& where, std::uint64_t published) noexcept;

    registration* registrations_ = nullptr; // per unit; a slab's is at each of its units

    std::atomic<std::uint64_t> generation_{0};
    binding_owner* owner_ = nullptr;
    bool misuse_is_error_ = false;
    std::size_t mrs_ = 0;
    std::unique_ptr<registrar> registrar_;
    mapping key_table_;
    mapping registration_table_;
};

} // namespace hcamem::core

#endif
