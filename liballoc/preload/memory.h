/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The memory that was taken: pieces of one pool of libhcamem, each handed to somebody as
 * the memory of a named pool, and the memory regions on it.
 *
 * A piece that was given back stays until its last memory region is gone, since UCX frees
 * first and deregisters later, from its cache.
 *
 * What a child of fork() inherited it finds zeroed, and giving that back does nothing.
 *
 * Every function may be called from any thread.
 */
#ifndef HCAMEM_PRELOAD_MEMORY_H
#define HCAMEM_PRELOAD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool.h"

struct ibv_mr;
struct ibv_pd;

/*
 * Memory for the pool of that name, page aligned, whole pages, of nobody else's: *memory and
 * *bytes. `untouched`: ordinary memory is to be used. `owner` and `name` are copied.
 */
enum outcome take_memory(const char* owner, const char* name, size_t wanted, size_t align,
                         void** memory, size_t* bytes);

/* `untouched`: it was not taken here. */
enum outcome give_back_memory(const void* memory);

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

/* For fork: nobody is in the tables; in the child all pieces are inherited. */
void lock_pieces(void);
void unlock_pieces(void);
void inherit_pieces(void);

#endif
