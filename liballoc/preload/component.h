/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What this library offers the Open MPI component, which finds it by dlsym(): memory that an
 * application asks for by name, as with MPI_Alloc_mem().
 */
#ifndef HCAMEM_PRELOAD_COMPONENT_H
#define HCAMEM_PRELOAD_COMPONENT_H

#include <stddef.h>

/* A block of the pool, or ordinary memory where that cannot be had; NULL in strict mode. */
void* hcamem_preload_alloc(size_t bytes, size_t align);
void hcamem_preload_free(void* block);
/* Bytes that may be used of the block. */
size_t hcamem_preload_usable(void* block);

#endif
