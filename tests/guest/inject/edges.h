/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HCAMEM_EDGES_H
#define HCAMEM_EDGES_H

/*
 * The driver takes or drops a lock or a reference in @function by @call. May
 * sleep: before what takes, after what drops, so never inside a spinlock.
 */
void hcamem_edge(const char *function, const char *call);

#endif
