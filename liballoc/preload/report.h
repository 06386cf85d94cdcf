/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What happened, for the report when the process ends. The callers hold no lock of ours. */
#ifndef HCAMEM_PRELOAD_REPORT_H
#define HCAMEM_PRELOAD_REPORT_H

#include <stdbool.h>
#include <stddef.h>

enum registered {
    by_dmabuf,       /* memory of ours, no page pinned by address */
    by_user_pages,   /* memory of ours, by ibv_reg_mr(): the HCA imports no dma-bufs */
    passed_through,  /* memory of ours, in a way no dma-buf has, such as for memory windows */
    of_other_memory, /* what the program registers without us */
    registered_kinds,
};

/* A piece of memory of a pool; taken: it is ours. Returns a number that stands for the pool. */
unsigned report_piece(const char* owner, const char* name, bool taken, const void* memory,
                      size_t bytes);
/* What was taken is no longer in use. */
void report_given_back(unsigned number, size_t bytes);
void report_registration(enum registered kind, bool from_ucx);
void report_fall_back(const char* why);

/* The first line of a child: its parent's counts are not its own. */
void report_forget(void);

#endif
