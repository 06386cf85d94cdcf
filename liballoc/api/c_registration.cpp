// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The C interface of registrations of a part of a slab.
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include <hcamem.h>

#include "api/check.h"
#include "os/process.h"
#include "pool/pool.h"
#include "verbs/registrar.h"

using namespace hcamem::core;

/// Needs nothing of the pool once it is made: the kernel's registration holds the pages.
struct hcamem_registration {
    std::unique_ptr<registrar> with;
    registration made;
    std::uint64_t generation;
};

int hcamem_register(hcamem_pool* handle, ibv_pd* pd, void* address, size_t length, int access,
                    hcamem_registration** made) {
    if (handle == nullptr || pd == nullptr || made == nullptr) {
        return fail_static(EINVAL, "the pool, the protection domain or the result is NULL");
    }
    int result = check(handle);
    if (result != 0) {
        return result;
    }
    pool& from = *to_core(handle);
    if (!from.in_one_slab(address, length)) {
        return fail(EINVAL, "registration of %zu bytes at %p: not a range in one slab of the pool",
                    length, address);
    }
    try {
        auto fresh = std::make_unique<hcamem_registration>();
        fresh->generation = process_generation();
        result = make_verbs_registrar(pd, access, from.dmabuf_only(), fresh->with);
        if (result == 0) {
            result = fresh->with->add(from.memory(), address, length, fresh->made);
        }
        if (result == 0) {
            *made = fresh.release();
        }
        return result;
    } catch (...) {
        return fail_static(ENOMEM, "no memory to register a part of a slab");
    }
}

int hcamem_registration_key(const hcamem_registration* of, hcamem_key* key) {
    if (of == nullptr || key == nullptr) {
        return fail_static(EINVAL, "the registration or the result is NULL");
    }
    *key = {};
    key->path = HCAMEM_PATH_NONE;
    if (of->generation == process_generation()) {
        key->lkey = of->made.lkey;
        key->rkey = of->made.rkey;
        key->path = of->made.path;
        key->access = of->with->access();
        key->mr = of->made.mr;
    }
    return 0;
}

int hcamem_unregister(hcamem_registration* ended) {
    if (ended == nullptr) {
        return 0;
    }
    if (ended->generation != process_generation()) {
        return 0; // the parent's: it must not be touched through the shared uverbs
    }
    const int result = ended->with->remove(ended->made);
    if (result == 0) {
        delete ended;
    }
    return result;
}
