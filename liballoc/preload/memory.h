/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The memory that was taken: pieces of one pool of libhcamem, each handed to somebody as
 * the memory of a named pool, and the memory regions on it.
 *
 * A piece that was given back stays until its last memory region is gone, since UCX frees
 * first and deregisters later, from its cache.
 *
 * After the first failure no more is taken in this process, and one line says why: UCX asks
 * for ever for memory that it cannot register. A child of fork() starts anew; what it
 * inherited it finds zeroed, and giving that back does nothing.
 *
 * Every function may be called from any thread.
 */
#ifndef HCAMEM_PRELOAD_MEMORY_H
#define HCAMEM_PRELOAD_MEMORY_H

#include <hcamem.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ibv_mr;
struct ibv_pd;

enum outcome {
    untouched, /* not ours: do what would be done without us */
    done,
    failed, /* an error that the caller must be told: errno */
};

/*
 * Memory for the pool of that name, page aligned, whole pages, of nobody else's: *memory and
 * *bytes. `untouched`: ordinary memory is to be used. `owner` and `name` are copied.
 */
enum outcome take_memory(const char* owner, const char* name, size_t wanted, size_t align,
                         void** memory, size_t* bytes);

/* `untouched`: it was not taken here. */
enum outcome give_back_memory(const void* memory);

/*
 * A block for the program itself, of at least so many bytes; align 0: 64. It is not held when it
 * is given back with memory regions on it: that is the program's own order of things. In a
 * child of fork() `untouched`, and giving back does nothing.
 */
enum outcome take_block(const char* owner, const char* name, size_t bytes, size_t align,
                        void** block);

/* All blocks that were ever taken lie between these, which nobody else's do: the pool reserves
 * its addresses. In a child its parent's, too. */
extern atomic_uintptr_t blocks_begin;
extern atomic_uintptr_t blocks_end;

static inline bool is_block(const void* address) {
    const uintptr_t at = (uintptr_t)address;
    return at >= atomic_load_explicit(&blocks_begin, memory_order_relaxed) &&
           at < atomic_load_explicit(&blocks_end, memory_order_relaxed);
}

void give_back_block(void* block);
/* Bytes that may be used of it; in a child 0. */
size_t block_bytes(const void* block);

/* Says that the pool has memory that was not taken; for the report. */
void note_other_memory(const char* owner, const char* name, const void* memory, size_t bytes);

/*
 * A memory region that the HCA names from iova on, if the range is ours. `failed`: it is, and
 * could not be registered. What neither a dma-buf nor this library can express is `untouched`.
 */
enum outcome register_memory(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                             int access, struct ibv_mr** mr);

/* Whether the calling thread is in register_memory(), which may come back by ibv_reg_mr(). */
bool is_registering(void);

/* `untouched`: the memory region was not made here. */
enum outcome deregister_memory(struct ibv_mr* mr);

#endif
