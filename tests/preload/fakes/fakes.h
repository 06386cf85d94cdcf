/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Libraries with the names and calls of the real ones, so that the host needs no HCA. */
#ifndef TESTS_PRELOAD_FAKES_H
#define TESTS_PRELOAD_FAKES_H

#include <stddef.h>
#include <stdint.h>

struct ibv_context;
struct ibv_mr;
struct ibv_pd;

/* libibverbs.so.1 */
struct fake_counts {
    unsigned long registered;
    unsigned long deregistered;
    unsigned long refused;
    unsigned last_access;
};
struct fake_counts* fake_counts(void);
struct ibv_context* fake_open(void);

/* libuct.so.0: a piece for a pool, as uct_iface_mem_alloc() gets it, registered or not. */
struct fake_piece {
    void* memory;
    size_t bytes;
    struct ibv_mr* mr;
    int real; /* it came from the fake itself */
};
int fake_grow(const char* pool, size_t bytes, struct ibv_pd* pd, struct fake_piece* piece);
/* UCX's order: memory first, then its memory region. */
void fake_shrink(struct fake_piece* piece);
void fake_free(const struct fake_piece* piece);
int fake_dereg(struct ibv_mr* mr);
struct ibv_mr* fake_reg(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                        unsigned access);

/* libfabric.so.1: a region of a buffer pool, begun after the protection domain was. */
struct ibv_pd* fake_domain(struct ibv_context* context);
void* fake_region(size_t bytes);
void fake_region_free(void* memory);

#endif
