/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef HCAMEM_PRELOAD_LIBFABRIC_H
#define HCAMEM_PRELOAD_LIBFABRIC_H

/*
 * If the code at this address is libfabric or a provider of it, its buffer pools come from
 * take_memory() from now on, and those of libfabric itself.
 */
void take_libfabric(const void* caller);

#endif
