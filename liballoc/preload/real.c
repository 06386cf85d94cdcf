/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#include "settings.h"

static const void* object_of(const void* address) {
    Dl_info info;
    return dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

/* dlsym() gives object pointers; POSIX lets them be used as functions. */
static any_function as_function(void* symbol) {
    union {
        void* symbol;
        any_function function;
    } cast = {.symbol = symbol};
    /* Not our own: the main program's search order begins with us. */
    return symbol != NULL && object_of(symbol) != object_of(&settings) ? cast.function : NULL;
}

/* The handle is kept, so that what was found is not unloaded while it is in the cache. */
static any_function look_in(const char* object, const char* name) {
    void* const handle = dlopen(object, RTLD_LAZY | RTLD_NOLOAD);
    any_function found = NULL;
    if (handle != NULL) {
        found = as_function(dlsym(handle, name));
        if (found == NULL) {
            dlclose(handle);
        }
    }
    return found;
}

static any_function look_up(const void* caller, const char* name, const char* library) {
    Dl_info info;
    any_function found = NULL;
    if (dladdr(caller, &info) != 0 && info.dli_fname != NULL) {
        found = look_in(info.dli_fname, name);
    }
    if (found == NULL) {
        found = as_function(dlsym(RTLD_NEXT, name));
    }
    if (found == NULL) {
        found = look_in(library, name);
    }
    if (found == NULL) {
        say("%s() was called, but %s is not loaded", name, library);
    }
    return found;
}

struct real_entry {
    struct real_entry* next;
    const void* caller;
    any_function function;
};

any_function real_function(struct real_cache* cache, const void* caller, const char* name,
                           const char* library) {
    for (struct real_entry* each = atomic_load(&cache->first); each != NULL; each = each->next) {
        if (each->caller == caller) {
            return each->function;
        }
    }
    const any_function found = look_up(caller, name, library);
    struct real_entry* const made = found != NULL ? malloc(sizeof *made) : NULL;
    if (made != NULL) {
        *made = (struct real_entry){atomic_load(&cache->first), caller, found};
        while (!atomic_compare_exchange_weak(&cache->first, &made->next, made)) {
        }
    }
    return found;
}
