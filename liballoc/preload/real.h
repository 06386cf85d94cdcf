/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The functions that this library stands in front of. */
#ifndef HCAMEM_PRELOAD_REAL_H
#define HCAMEM_PRELOAD_REAL_H

#include <stdatomic.h>

/* Makes a function of another type of what real_function() found. */
typedef void (*any_function)(void);

/* What was found, per place that called. One per function, zeroed; needs no lock, which a
 * child of fork() might find taken. */
struct real_entry;
struct real_cache {
    _Atomic(struct real_entry*) first;
};

/*
 * The function of that name which the code at the address `caller` would call without this
 * library: that of the libraries its object was linked with, since a plug-in may have been
 * loaded with its own, out of sight of others; else of what is loaded for everybody, else of
 * `library` if that is loaded. NULL: there is none, and a line said so.
 */
any_function real_function(struct real_cache* cache, const void* caller, const char* name,
                           const char* library);

#endif
