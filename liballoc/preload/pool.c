/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#define _GNU_SOURCE
#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "memory.h"
#include "report.h"
#include "settings.h"

struct library library;

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* held while the pool is made */
static bool library_loaded;
static _Atomic(hcamem_pool*) pool;
static atomic_bool failed_before;
static atomic_int process; /* whose all this is */
static atomic_bool is_child;

static void begin_anew(void) {
    inherit_pieces();
    atomic_store(&pool, NULL);
    atomic_store(&failed_before, false);
    atomic_store(&process, getpid());
    atomic_store(&is_child, true);
    report_forget();
}

/* `making` may be held by a thread that the child does not have, over calls of libhcamem, which
 * has fork handlers of its own: so it is not waited for, but made anew. */
static void after_fork_in_child(void) {
    pthread_mutex_init(&making, NULL);
    begin_anew();
}

__attribute__((constructor)) static void begin(void) {
    atomic_store(&process, getpid());
    pthread_atfork(lock_pieces, unlock_pieces, after_fork_in_child);
}

/* A child made by a bare clone() has had no fork handler run. */
static void enter(void) {
    const int known = atomic_load(&process);
    if (known != 0 && known != getpid()) {
        after_fork_in_child();
    }
}

hcamem_pool* current_pool(void) {
    enter();
    return atomic_load(&pool);
}

bool in_child(void) {
    enter();
    return atomic_load(&is_child);
}

enum outcome fall_back(const char* owner, const char* name, size_t bytes, int error,
                       const char* why) {
    if (!atomic_exchange(&failed_before, true)) {
        say("%zu KiB for %s of %s: %s%s", bytes / 1024, name, owner, why,
            settings.strict ? "" : "; ordinary memory is used from now on");
        report_fall_back(why);
    }
    errno = error;
    return settings.strict ? failed : untouched;
}

/* NULL: *why says why there is none. */
static hcamem_pool* open_pool(const char** why) {
    hcamem_pool* found = atomic_load(&pool);
    if (found != NULL) {
        return found;
    }
    pthread_mutex_lock(&making);
    found = atomic_load(&pool);
    if (found == NULL && !library_loaded) {
        library_loaded = load_library(&library, why);
    }
    if (found == NULL && library_loaded) {
        struct hcamem_options options;
        library.options_init(&options, sizeof options);
        if (options.source == HCAMEM_AUTO) {
            options.source = HCAMEM_DEVICE; /* without it there is nothing to take */
        }
        if (options.mapping == HCAMEM_MAP_AUTO) {
            options.mapping = HCAMEM_MAP_PAGES; /* whatever the program does with it */
        }
        if (secure_getenv("HCAMEM_INITIAL") == NULL) {
            options.initial = 0;
        }
        if (options.growth == 0) {
            options.growth = HCAMEM_SLAB_UNIT; /* pieces are large: no more than they need */
        }
        if (library.pool_create(&options, &found) == 0) {
            atomic_store(&pool, found);
        } else {
            found = NULL;
            *why = library.last_message();
        }
    }
    pthread_mutex_unlock(&making);
    return found;
}

enum outcome obtain(const char* owner, const char* name, size_t bytes, size_t align,
                    void** memory) {
    enter();
    if (!settings.take || align > HCAMEM_SLAB_UNIT) {
        return untouched;
    }
    if (atomic_load(&failed_before)) {
        errno = ENOMEM;
        return settings.strict ? failed : untouched;
    }
    const char* why = "?";
    hcamem_pool* const from = open_pool(&why);
    if (from == NULL) {
        return fall_back(owner, name, bytes, ENOMEM, why);
    }
    *memory = library.alloc(from, bytes, align, 0);
    return *memory != NULL ? done : fall_back(owner, name, bytes, errno, library.last_message());
}
