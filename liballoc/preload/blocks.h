/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory for the program itself, by its malloc() or MPI_Alloc_mem(). */
#ifndef HCAMEM_PRELOAD_BLOCKS_H
#define HCAMEM_PRELOAD_BLOCKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool.h"

/* Who asks for blocks, as the report has it. */
struct block_user {
    const char* owner;
    const char* name;
    atomic_uint number; /* the report's */
};

/*
 * A block for the program itself, of at least so many bytes; align 0: 64. It is not held when it
 * is given back with memory regions on it: that is the program's own order of things. In a
 * child of fork() `untouched`, and giving back does nothing.
 */
enum outcome take_block(struct block_user* user, size_t bytes, size_t align, void** block);

/* All blocks that were ever taken lie between these, which nobody else's do: the pool reserves
 * its addresses. In a child its parent's, too. */
extern atomic_uintptr_t blocks_begin;
extern atomic_uintptr_t blocks_end;

static inline bool is_block(const void* address) {
    const uintptr_t at = (uintptr_t)address;
    return at >= atomic_load_explicit(&blocks_begin, memory_order_relaxed) &&
           at < atomic_load_explicit(&blocks_end, memory_order_relaxed);
}

/* By the user that took it. */
void give_back_block(struct block_user* user, void* block);
/* Bytes that may be used of it; in a child 0. */
size_t block_bytes(const void* block);

#endif
