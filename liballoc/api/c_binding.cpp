// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The C interface of bindings and keys.
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include <hcamem.h>

#include "api/attach.h"
#include "api/check.h"
#include "pool/pool.h"

using namespace hcamem::core;

namespace hcamem::core {

int attach_with(hcamem_pool* handle, std::unique_ptr<registrar> with,
                hcamem_binding** made) noexcept {
    try {
        binding* core = nullptr;
        const int result = to_core(handle)->attach(std::move(with), core);
        if (result == 0) {
            *made = to_handle(core);
        }
        return result;
    } catch (const std::bad_alloc&) {
        return fail_static(ENOMEM, "no memory to attach a protection domain");
    } catch (...) {
        return fail_static(EIO, "the protection domain could not be attached");
    }
}

} // namespace hcamem::core

int hcamem_attach(hcamem_pool* handle, ibv_pd* pd, int access, hcamem_binding** made) {
    if (handle == nullptr || pd == nullptr || made == nullptr) {
        return fail_static(EINVAL, "the pool, the protection domain or the result is NULL");
    }
    int result = check(handle);
    if (result != 0) {
        return result;
    }
    try {
        std::unique_ptr<registrar> with;
        result = make_verbs_registrar(pd, access, to_core(handle)->dmabuf_only(), with);
        return result != 0 ? result : attach_with(handle, std::move(with), made);
    } catch (...) {
        return fail_static(ENOMEM, "no memory to attach a protection domain");
    }
}

int hcamem_detach(hcamem_binding* handle) {
    if (handle == nullptr) {
        return 0;
    }
    binding* const core = to_core(handle);
    if (core->generation() != process_generation()) {
        return 0; // the parent's: its memory regions must not be touched through the shared uverbs
    }
    binding_owner* const owner = core->owner();
    if (owner == nullptr) {
        return misuse(core->misuse_is_error(), "binding %p was detached before",
                      static_cast<const void*>(handle));
    }
    return owner->detach(*core);
}

uint32_t hcamem_lkey(const hcamem_binding* handle, const void* address) {
    return handle != nullptr ? to_core(handle)->lkey(address) : 0;
}

uint32_t hcamem_rkey(const hcamem_binding* handle, const void* address) {
    return handle != nullptr ? to_core(handle)->rkey(address) : 0;
}

int hcamem_key_of(const hcamem_binding* handle, const void* address, hcamem_key* key) {
    if (handle == nullptr || key == nullptr) {
        return fail_static(EINVAL, "the binding or the result is NULL");
    }
    if (!to_core(handle)->find(address, *key)) {
        return fail(EFAULT, "address %p is in no slab of the pool", address);
    }
    return 0;
}
