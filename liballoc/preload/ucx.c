/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * UCX's pools of eager buffers. Each grows by uct_mem_alloc(), which libuct calls through
 * its PLT, with the pool's name, and registers by itself what it is given. The signatures are
 * those of UCX 1.10 to 1.22.
 */
#define _GNU_SOURCE
#include <string.h>
#include <uct/api/uct.h>

#include "export.h"
#include "memory.h"
#include "real.h"
#include "settings.h"

#define LIBRARY "libuct.so.0"

/* Memory that ranks of one machine share is not the HCA's: mm_recv_desc, mm_recv_fifo. */
static const char* pool_name(const uct_mem_alloc_params_t* params) {
    const uint64_t given = params->field_mask;
    const char* name = (given & UCT_MEM_ALLOC_PARAM_FIELD_NAME) != 0 ? params->name : NULL;
    const bool on_host = (given & UCT_MEM_ALLOC_PARAM_FIELD_MEM_TYPE) == 0 ||
                         params->mem_type == UCS_MEMORY_TYPE_HOST;
    const bool fixed = (given & UCT_MEM_ALLOC_PARAM_FIELD_FLAGS) != 0 &&
                       (params->flags & UCT_MD_MEM_FLAG_FIXED) != 0;
    const bool shared = name != NULL && strncmp(name, "mm_", 3) == 0;
    return on_host && !fixed && !shared ? name : NULL;
}

/* What UCX names the pools of its transports over InfiniBand. Memory under other names is
 * another transport's or the application's own, since uct_mem_alloc() is public. */
static bool is_eager_pool(const char* name) {
    static const char* const beginnings[] = {"rc_", "ud_", "dc_", "tag_eager_"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; ++i) {
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0) {
            return true;
        }
    }
    return false;
}

HOOK ucs_status_t uct_mem_alloc(size_t length, const uct_alloc_method_t* methods,
                                unsigned method_count, const uct_mem_alloc_params_t* params,
                                uct_allocated_memory_t* made) {
    const char* const name = pool_name(params);
    const bool eager = name != NULL && is_eager_pool(name);
    if (eager) {
        void* memory = NULL;
        size_t bytes = 0;
        switch (take_memory("ucx", name, length, 0, &memory, &bytes)) {
        case done:
            made->address = memory;
            made->length = bytes;
            made->method = UCT_ALLOC_METHOD_MMAP;
            made->mem_type = UCS_MEMORY_TYPE_HOST;
            made->md = NULL;
            made->memh = UCT_MEM_HANDLE_NULL;
            return UCS_OK;
        case failed:
            return UCS_ERR_NO_MEMORY;
        case untouched:
            break;
        }
    }
    static struct real_cache cache;
    const any_function found =
        real_function(&cache, __builtin_return_address(0), "uct_mem_alloc", LIBRARY);
    if (found == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }
    const ucs_status_t status =
        ((__typeof__(&uct_mem_alloc))found)(length, methods, method_count, params, made);
    if (eager && status == UCS_OK) {
        note_other_memory("ucx", name, made->address, made->length);
    }
    return status;
}

HOOK ucs_status_t uct_mem_free(const uct_allocated_memory_t* memory) {
    if (give_back_memory(memory->address) == done) {
        return UCS_OK;
    }
    static struct real_cache cache;
    const any_function found =
        real_function(&cache, __builtin_return_address(0), "uct_mem_free", LIBRARY);
    return found != NULL ? ((__typeof__(&uct_mem_free))found)(memory) : UCS_ERR_UNSUPPORTED;
}
