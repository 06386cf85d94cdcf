/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A libibverbs.so.1 without an HCA: memory regions are blocks of malloc(). FAKE_REG_FAIL=ERRNO
 * makes the first registration fail so. What it was asked for it tells through fake_counts().
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>

#include "fakes.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static struct fake_counts counts;

struct fake_counts* fake_counts(void) {
    return &counts;
}

static struct ibv_mr* make(struct ibv_pd* pd, void* address, size_t length, unsigned access) {
    const char* refused = getenv("FAKE_REG_FAIL");
    if (refused != NULL && counts.refused == 0) {
        ++counts.refused;
        errno = atoi(refused);
        return NULL;
    }
    struct ibv_mr* const mr = calloc(1, sizeof *mr);
    mr->pd = pd;
    mr->context = pd->context;
    mr->addr = address;
    mr->length = length;
    mr->lkey = mr->rkey = (uint32_t)++counts.registered;
    counts.last_access = access;
    return mr;
}

struct ibv_mr* ibv_reg_mr(struct ibv_pd* pd, void* address, size_t length, int access) {
    return make(pd, address, length, (unsigned)access);
}

struct ibv_mr* ibv_reg_mr_iova(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                               int access) {
    (void)iova;
    return make(pd, address, length, (unsigned)access);
}

struct ibv_mr* ibv_reg_mr_iova2(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                                unsigned int access) {
    (void)iova;
    return make(pd, address, length, access);
}

struct ibv_mr* ibv_reg_dmabuf_mr(struct ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova,
                                 int fd, int access) {
    (void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
    errno = EOPNOTSUPP;
    return NULL;
}

int ibv_dereg_mr(struct ibv_mr* mr) {
    ++counts.deregistered;
    free(mr);
    return 0;
}

struct ibv_pd* ibv_alloc_pd(struct ibv_context* context) {
    struct ibv_pd* const pd = calloc(1, sizeof *pd);
    pd->context = context;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd* pd) {
    free(pd);
    return 0;
}

const char* ibv_get_device_name(struct ibv_device* device) {
    return device->name;
}

struct ibv_context* fake_open(void) {
    static struct ibv_device device = {.name = "fake0", .dev_name = "uverbs_fake"};
    static struct ibv_context context = {.device = &device, .cmd_fd = -1};
    return &context;
}
