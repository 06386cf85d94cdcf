/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#define _GNU_SOURCE
#include "component.h"

#include <malloc.h>
#include <stdlib.h>

#include "blocks.h"
#include "export.h"

static struct block_user mpi = {.owner = "mpi", .name = "MPI_Alloc_mem"};

HOOK void* hcamem_preload_alloc(size_t bytes, size_t align) {
    void* block = NULL;
    align = align > 64 ? align : 64;
    if (take_block(&mpi, bytes, align, &block) == untouched &&
        posix_memalign(&block, align, bytes) != 0) {
        return NULL;
    }
    return block;
}

HOOK void hcamem_preload_free(void* block) {
    if (is_block(block)) {
        give_back_block(&mpi, block);
    } else {
        free(block);
    }
}

HOOK size_t hcamem_preload_usable(void* block) {
    return is_block(block) ? block_bytes(block) : malloc_usable_size(block);
}
