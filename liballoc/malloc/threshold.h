/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef HCAMEM_MALLOC_THRESHOLD_H
#define HCAMEM_MALLOC_THRESHOLD_H

#include <stddef.h>

/* HCAMEM_MALLOC_THRESHOLD: bytes, with K, M or G; 64 KiB if it is not set. A value that makes
 * no sense is ignored, with a line. */
size_t read_threshold(void);

/* glibc's malloc_usable_size(). Finding it may wait for the loader, which realloc() must not:
 * to be found early. */
void find_libc_usable_size(void);
size_t libc_usable_size(void* block);

#endif
