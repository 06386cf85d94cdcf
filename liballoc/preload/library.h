/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libhcamem, loaded when it is first needed: a program that never takes memory of ours
 * pays neither for it nor for libibverbs behind it.
 */
#ifndef HCAMEM_PRELOAD_LIBRARY_H
#define HCAMEM_PRELOAD_LIBRARY_H

#include <hcamem.h>

#include <stdbool.h>

struct library {
    __typeof__(&hcamem_options_init) options_init;
    __typeof__(&hcamem_pool_create) pool_create;
    __typeof__(&hcamem_get_stats) stats;
    __typeof__(&hcamem_alloc) alloc;
    __typeof__(&hcamem_free) free;
    __typeof__(&hcamem_trim) trim;
    __typeof__(&hcamem_owns) owns;
    __typeof__(&hcamem_usable) usable;
    __typeof__(&hcamem_register) reg;
    __typeof__(&hcamem_registration_key) key;
    __typeof__(&hcamem_unregister) unreg;
    __typeof__(&hcamem_last_message) last_message;
};

/* Fills *loaded. False: *why says why not. */
bool load_library(struct library* loaded, const char** why);

#endif
