/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A memory pool component for Open MPI 4.1. It does two things without LD_PRELOAD:
 *
 * When it is opened, before UCX is, it loads libhcamem-preload.so for everybody, so that UCX
 * and libfabric find that in front of their own functions.
 *
 * MPI_Alloc_mem() with the info key mpool_hints = hcamem, or all of it with the parameter
 * mpool_hcamem_priority above 50, is served from the pool.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <opal_config.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opal/constants.h>
#include <opal/mca/base/mca_base_var.h>
#include <opal/mca/mpool/base/base.h>
#include <opal/mca/mpool/mpool.h>

#include "preload/component.h"

#if OPAL_MAJOR_VERSION != 4 || OPAL_MINOR_VERSION != 1
#error "this component is for Open MPI 4.1: its headers must be those of libopenmpi-dev 4.1"
#endif

#define PRELOAD "libhcamem-preload.so"

static int priority; /* of MPI_Alloc_mem() without a hint; Open MPI's own has 50 */
static struct {
    __typeof__(&hcamem_preload_alloc) alloc;
    __typeof__(&hcamem_preload_free) free;
    __typeof__(&hcamem_preload_usable) usable;
} blocks;

static int register_parameters(void);
static int open_component(void);
static int query(const char* hints, int* chosen, mca_mpool_base_module_t** module);

/* Its name is the one that Open MPI looks for. */
OPAL_MODULE_DECLSPEC extern mca_mpool_base_component_t mca_mpool_hcamem_component;
mca_mpool_base_component_t mca_mpool_hcamem_component = {
    .mpool_version = {MCA_MPOOL_BASE_VERSION_3_0_0, .mca_component_name = "hcamem",
                      MCA_BASE_MAKE_VERSION(component, OPAL_MAJOR_VERSION, OPAL_MINOR_VERSION,
                                            OPAL_RELEASE_VERSION),
                      .mca_open_component = open_component,
                      .mca_register_component_params = register_parameters},
    .mpool_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .mpool_query = query,
};

static void say(const char* text, const char* detail) {
    fprintf(stderr, "hcamem: Open MPI component: %s%s\n", text, detail);
}

/* The library that is running may be another than that of the headers. */
static int is_known_version(void) {
    char text[4096] = "";
    int length = 0;
    int (*get)(char*, int*) = NULL;
    void* const found = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    memcpy(&get, &found, sizeof get);
    if (get == NULL) {
        return 1; /* a program without MPI, such as mpirun itself */
    }
    get(text, &length);
    if (strncmp(text, "Open MPI v4.1.", strlen("Open MPI v4.1.")) == 0) {
        return 1;
    }
    text[strcspn(text, ",")] = '\0';
    say("it is for Open MPI 4.1 and does nothing in ", text);
    return 0;
}

/* In the folder above that of this component, else where it was installed. */
static void* load_preload(void) {
    Dl_info self;
    if (dladdr(&mca_mpool_hcamem_component, &self) != 0 && self.dli_fname != NULL) {
        char path[4096];
        const char* slash = strrchr(self.dli_fname, '/');
        const int folder = slash != NULL ? (int)(slash - self.dli_fname + 1) : 0;
        const int length = snprintf(path, sizeof path, "%.*s../" PRELOAD, folder, self.dli_fname);
        if (length > 0 && (size_t)length < sizeof path) {
            void* const handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
            if (handle != NULL) {
                return handle;
            }
        }
    }
    return dlopen(HCAMEM_LIBDIR "/" PRELOAD, RTLD_NOW | RTLD_GLOBAL);
}

static int find(void* from, const char* name, void* where) {
    void* const found = dlsym(from, name);
    memcpy(where, &found, sizeof found);
    return found != NULL;
}

static int open_component(void) {
    if (!is_known_version()) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    void* from = RTLD_DEFAULT; /* by LD_PRELOAD, if it is there already */
    if (dlsym(from, "hcamem_preload_alloc") == NULL) {
        void* const early = dlopen("libuct.so.0", RTLD_LAZY | RTLD_NOLOAD);
        if (early != NULL) {
            dlclose(early);
            say("UCX was loaded before it, so its buffers stay where they are: use hcamem-run", "");
        }
        from = load_preload();
    }
    if (from == NULL) {
        say("does nothing: ", dlerror());
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (!find(from, "hcamem_preload_alloc", &blocks.alloc) ||
        !find(from, "hcamem_preload_free", &blocks.free) ||
        !find(from, "hcamem_preload_usable", &blocks.usable)) {
        say("does nothing: not this version's " PRELOAD ": ", dlerror());
        return OPAL_ERR_NOT_AVAILABLE;
    }
    return OPAL_SUCCESS;
}

static int register_parameters(void) {
    const int index = mca_base_component_var_register(
        &mca_mpool_hcamem_component.mpool_version, "priority",
        "Priority for MPI_Alloc_mem without a hint; above 50 all of it is served",
        MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_LOCAL, &priority);
    return index >= 0 ? OPAL_SUCCESS : index;
}

static void* allocate(mca_mpool_base_module_t* module, size_t bytes, size_t align, uint32_t flags) {
    (void)module, (void)flags;
    return blocks.alloc(bytes, align);
}

static void release(mca_mpool_base_module_t* module, void* block) {
    (void)module;
    blocks.free(block);
}

static void* reallocate(mca_mpool_base_module_t* module, void* block, size_t bytes) {
    void* const fresh = allocate(module, bytes, 0, 0);
    if (fresh != NULL && block != NULL) {
        const size_t held = blocks.usable(block);
        memcpy(fresh, block, held < bytes ? held : bytes);
        release(module, block);
    }
    return fresh;
}

static char module_name[] = "hcamem";
static mca_mpool_base_module_t module = {
    .mpool_component = &mca_mpool_hcamem_component,
    .mpool_alloc = allocate,
    .mpool_realloc = reallocate,
    .mpool_free = release,
    .mpool_allocation_unit = 4096,
    .mpool_name = module_name,
};

/* Hints are a list such as "page_size=2M,hcamem" or "mpool=hcamem". */
static int is_meant(const char* hints) {
    const size_t length = strlen(module_name);
    for (const char* at = hints; at != NULL && (at = strstr(at, module_name)) != NULL;
         at += length) {
        const int begins = at == hints || at[-1] == ',' || at[-1] == '=';
        const int ends = at[length] == '\0' || at[length] == ',';
        if (begins && ends) {
            return 1;
        }
    }
    return 0;
}

static int query(const char* hints, int* chosen, mca_mpool_base_module_t** found) {
    *chosen = is_meant(hints) ? 100 : priority;
    *found = &module;
    return OPAL_SUCCESS;
}
