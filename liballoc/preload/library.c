/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define SONAME "libhcamem.so.0"

/* Beside this library, else where the loader finds it. */
static void* open_library(void) {
    Dl_info self;
    if (dladdr(__extension__(void*) & load_library, &self) != 0 && self.dli_fname != NULL) {
        char path[4096];
        const char* slash = strrchr(self.dli_fname, '/');
        const int folder = slash != NULL ? (int)(slash - self.dli_fname + 1) : 0;
        const int length = snprintf(path, sizeof path, "%.*s" SONAME, folder, self.dli_fname);
        if (folder != 0 && length > 0 && (size_t)length < sizeof path) {
            void* const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (handle != NULL) {
                return handle;
            }
        }
    }
    return dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
}

bool load_library(struct library* loaded, const char** why) {
    void* const handle = open_library();
    if (handle == NULL) {
        *why = dlerror();
        return false;
    }
    const struct {
        void* where;
        const char* name;
    } wanted[] = {
        {&loaded->options_init, "hcamem_options_init"},
        {&loaded->pool_create, "hcamem_pool_create"},
        {&loaded->stats, "hcamem_get_stats"},
        {&loaded->alloc, "hcamem_alloc"},
        {&loaded->free, "hcamem_free"},
        {&loaded->trim, "hcamem_trim"},
        {&loaded->owns, "hcamem_owns"},
        {&loaded->usable, "hcamem_usable"},
        {&loaded->reg, "hcamem_register"},
        {&loaded->key, "hcamem_registration_key"},
        {&loaded->unreg, "hcamem_unregister"},
        {&loaded->last_message, "hcamem_last_message"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i) {
        void* const symbol = dlsym(handle, wanted[i].name);
        if (symbol == NULL) {
            *why = dlerror();
            return false;
        }
        memcpy(wanted[i].where, &symbol, sizeof symbol);
    }
    return true;
}
