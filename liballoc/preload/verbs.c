/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Registration. The version nodes in preload.map are libibverbs' own, since a reference to
 * ibv_reg_mr@IBVERBS_1.1 is bound to no other. Programs bound to IBVERBS_1.0, whose structures
 * differ, go past this library, and so does who asks dlsym() for libibverbs' functions.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <string.h>

#include "export.h"
#include "libfabric.h"
#include "memory.h"
#include "real.h"
#include "report.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define LIBRARY "libibverbs.so.1"
#define CALLER __builtin_return_address(0)

/* The functions that libibverbs makes behind macros have no declaration of their own. */
struct ibv_mr* ibv_reg_mr_iova2(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                                unsigned int access);

static bool is_ucx(const void* caller) {
    Dl_info info;
    return dladdr(caller, &info) != 0 && info.dli_fname != NULL &&
           strstr(info.dli_fname, "libuct") != NULL;
}

static struct ibv_mr* count_other(struct ibv_mr* mr, const void* caller) {
    if (mr != NULL && !is_registering()) {
        const int saved = errno;
        report_registration(of_other_memory, is_ucx(caller));
        errno = saved;
    }
    return mr;
}

HOOK struct ibv_mr* ibv_reg_mr(struct ibv_pd* pd, void* address, size_t length, int access) {
    struct ibv_mr* mr = NULL;
    if (register_memory(pd, address, length, (uintptr_t)address, access, &mr) != untouched) {
        return mr;
    }
    static struct real_cache cache;
    const any_function found = real_function(&cache, CALLER, "ibv_reg_mr", LIBRARY);
    if (found == NULL) {
        errno = ENOSYS;
        return NULL;
    }
    return count_other(((__typeof__(&ibv_reg_mr))found)(pd, address, length, access), CALLER);
}

HOOK struct ibv_mr* ibv_reg_mr_iova(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                                    int access) {
    struct ibv_mr* mr = NULL;
    if (register_memory(pd, address, length, iova, access, &mr) != untouched) {
        return mr;
    }
    static struct real_cache cache;
    const any_function found = real_function(&cache, CALLER, "ibv_reg_mr_iova", LIBRARY);
    if (found == NULL) {
        errno = ENOSYS;
        return NULL;
    }
    return count_other(((__typeof__(&ibv_reg_mr_iova))found)(pd, address, length, iova, access),
                       CALLER);
}

HOOK struct ibv_mr* ibv_reg_mr_iova2(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                                     unsigned int access) {
    struct ibv_mr* mr = NULL;
    if (register_memory(pd, address, length, iova, (int)access, &mr) != untouched) {
        return mr;
    }
    static struct real_cache cache;
    const any_function found = real_function(&cache, CALLER, "ibv_reg_mr_iova2", LIBRARY);
    if (found == NULL) {
        errno = ENOSYS;
        return NULL;
    }
    return count_other(((__typeof__(&ibv_reg_mr_iova2))found)(pd, address, length, iova, access),
                       CALLER);
}

/* Returns an errno, as libibverbs does. */
HOOK int ibv_dereg_mr(struct ibv_mr* mr) {
    switch (deregister_memory(mr)) {
    case done:
        return 0;
    case failed:
        return errno;
    case untouched:
        break;
    }
    static struct real_cache cache;
    const any_function found = real_function(&cache, CALLER, "ibv_dereg_mr", LIBRARY);
    return found != NULL ? ((__typeof__(&ibv_dereg_mr))found)(mr) : ENOSYS;
}

/* Made before any buffer: the moment to look at who makes it. */
HOOK struct ibv_pd* ibv_alloc_pd(struct ibv_context* context) {
    take_libfabric(CALLER);
    static struct real_cache cache;
    const any_function found = real_function(&cache, CALLER, "ibv_alloc_pd", LIBRARY);
    if (found == NULL) {
        errno = ENOSYS;
        return NULL;
    }
    return ((__typeof__(&ibv_alloc_pd))found)(context);
}
