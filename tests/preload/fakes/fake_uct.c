/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <uct/api/uct.h>

#include "fakes.h"

struct ibv_mr* ibv_reg_mr_iova2(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                                unsigned int access);

ucs_status_t uct_mem_alloc(size_t length, const uct_alloc_method_t* methods, unsigned method_count,
                           const uct_mem_alloc_params_t* params, uct_allocated_memory_t* made) {
    (void)methods, (void)method_count, (void)params;
    made->address = aligned_alloc(4096, (length + 4095) / 4096 * 4096);
    made->length = length;
    made->method = UCT_ALLOC_METHOD_HEAP;
    return made->address != NULL ? UCS_OK : UCS_ERR_NO_MEMORY;
}

ucs_status_t uct_mem_free(const uct_allocated_memory_t* memory) {
    free(memory->address);
    return UCS_OK;
}

int fake_grow(const char* pool, size_t bytes, struct ibv_pd* pd, struct fake_piece* piece) {
    const uct_mem_alloc_params_t params = {.field_mask = UCT_MEM_ALLOC_PARAM_FIELD_NAME,
                                           .name = pool};
    uct_allocated_memory_t memory = {.method = UCT_ALLOC_METHOD_LAST};
    if (uct_mem_alloc(bytes, NULL, 0, &params, &memory) != UCS_OK) {
        return -1;
    }
    *piece = (struct fake_piece){.memory = memory.address,
                                 .bytes = memory.length,
                                 .real = memory.method == UCT_ALLOC_METHOD_HEAP};
    if (pd == NULL) {
        return 0;
    }
    piece->mr = ibv_reg_mr(pd, piece->memory, bytes, 0xf);
    if (piece->mr == NULL) {
        uct_mem_free(&memory);
        return -2;
    }
    return 0;
}

void fake_free(const struct fake_piece* piece) {
    const uct_allocated_memory_t memory = {.address = piece->memory,
                                           .length = piece->bytes,
                                           .method = piece->real ? UCT_ALLOC_METHOD_HEAP
                                                                 : UCT_ALLOC_METHOD_MMAP};
    uct_mem_free(&memory);
}

int fake_dereg(struct ibv_mr* mr) {
    return ibv_dereg_mr(mr);
}

void fake_shrink(struct fake_piece* piece) {
    fake_free(piece);
    if (piece->mr != NULL) {
        ibv_dereg_mr(piece->mr);
    }
}

struct ibv_mr* fake_reg(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                        unsigned access) {
    return (ibv_reg_mr_iova2)(pd, address, length, iova, access);
}
