// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "pool/binding.h"

#include <cerrno>
#include <new>
#include <utility>

#include "error/message.h"

namespace hcamem::core {

bool binding::find(const void* address, hcamem_key& key) const noexcept {
    const std::uint64_t found = keys_at(address);
    key = {};
    key.path = HCAMEM_PATH_NONE;
    if (found == 0) {
        return false;
    }
    // Written before the keys were published, and not until they were withdrawn.
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - base);
    const registration& made = registrations_[offset / slab_unit];
    key.lkey = static_cast<std::uint32_t>(found);
    key.rkey = static_cast<std::uint32_t>(found >> 32);
    key.path = made.path;
    key.access = registrar_->access();
    key.mr = made.mr;
    return true;
}

int binding::open(const place& where, std::unique_ptr<registrar> with) noexcept {
    const std::size_t units = where.bytes / slab_unit;
    int result = key_table_.make_table(units * sizeof(*keys), true);
    if (result == 0) {
        result = registration_table_.make_table(units * sizeof(*registrations_));
    }
    if (result != 0) {
        key_table_.reset();
        return result;
    }
    keys = key_table_.as<std::atomic<std::uint64_t>>();
    registrations_ = registration_table_.as<registration>();
    base = where.base;
    bytes = where.bytes;
    owner_ = where.owner;
    misuse_is_error_ = where.misuse_is_error;
    mrs_ = 0;
    registrar_ = std::move(with);
    generation_.store(where.generation, std::memory_order_relaxed);
    return 0;
}

void binding::close() noexcept {
    base = nullptr;
    bytes = 0;
    keys = nullptr;
    registrations_ = nullptr;
    owner_ = nullptr;
    registrar_.reset();
    key_table_.reset();
    registration_table_.reset();
}

int binding::add(const slab& added, exporter& from) noexcept {
    registration made;
    int result = 0;
    try {
        result = registrar_->add(from, base + added.unit * slab_unit, added.bytes(), made);
    } catch (const std::bad_alloc&) {
        result = fail(ENOMEM, "no memory to register a slab");
    }
    if (result != 0) {
        return result;
    }
    for (std::size_t unit = added.unit; unit < added.unit + added.units; ++unit) {
        registrations_[unit] = made;
    }
    ++mrs_;
    publish(added, std::uint64_t{made.rkey} << 32 | made.lkey);
    return 0;
}

int binding::remove(const slab& removed) noexcept {
    const registration made = registrations_[removed.unit];
    if (made.path == HCAMEM_PATH_NONE || made.mr == nullptr) {
        return 0;
    }
    publish(removed, 0); // before the keys stop working
    const int result = registrar_->remove(made);
    if (result != 0) {
        publish(removed, std::uint64_t{made.rkey} << 32 | made.lkey);
        return result;
    }
    for (std::size_t unit = removed.unit; unit < removed.unit + removed.units; ++unit) {
        registrations_[unit] = registration{};
    }
    --mrs_;
    return 0;
}

void binding::publish(const slab& where, std::uint64_t published) noexcept {
    for (std::size_t unit = where.unit; unit < where.unit + where.units; ++unit) {
        keys[unit].store(published, std::memory_order_release);
    }
}

} // namespace hcamem::core
