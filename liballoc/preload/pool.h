/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The pool of libhcamem that all memory comes from, made when it is first needed.
 *
 * After the first failure no more is taken in this process, and one line says why: UCX asks
 * for ever for memory that it cannot register. A request above the pool's maximum fails alone.
 * A child of fork() starts anew; one that shares its parent's memory, as after vfork(), is its
 * parent here.
 */
#ifndef HCAMEM_PRELOAD_POOL_H
#define HCAMEM_PRELOAD_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "library.h"

enum outcome {
    untouched, /* not ours: do what would be done without us */
    done,
    failed, /* an error that the caller must be told: errno */
};

/* Filled once there is a pool. */
extern struct library library;

/* Loads libhcamem before it is needed, for who may not wait for the loader then. */
void load_early(void);

/* This process's; NULL: it has none yet. */
hcamem_pool* current_pool(void);

/* Whether this is a child of the process that loaded this library. */
bool in_child(void);

/* Memory of the pool for this owner; the alignment is at most HCAMEM_SLAB_UNIT. */
enum outcome obtain(const char* owner, const char* name, size_t bytes, size_t align, void** memory);

/* What is refused for whom, and what the user can do, once; then no more is taken. */
enum outcome fall_back(const char* owner, const char* name, size_t bytes, int error,
                       const char* why);

#endif
