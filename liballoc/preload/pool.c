/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#define _GNU_SOURCE
#include "pool.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "memory.h"
#include "report.h"
#include "settings.h"

struct library library;

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* held while the pool is made */
static atomic_bool library_loaded;
static atomic_uint loading;   /* threads that are at it */
static atomic_bool cut_short; /* by fork(): what the child has of libhcamem is half loaded */
static _Atomic(hcamem_pool*) pool;
static atomic_bool failed_before;
static size_t maximum; /* of the pool, bytes */
static atomic_bool is_child;

/* True once this process is known. In a page of its own: the kernel zeroes that in a child with a
 * copy of this memory, but not in one that shares it, as after vfork(). NULL: no such page. */
static atomic_bool* is_known;

static void begin_anew(void) {
    inherit_pieces();
    if (atomic_exchange(&loading, 0) != 0) {
        atomic_store(&cut_short, true);
    }
    atomic_store(&pool, NULL);
    atomic_store(&failed_before, false);
    atomic_store(&is_child, true);
    report_forget();
    if (is_known != NULL) {
        atomic_store(is_known, true);
    }
}

/* `making` may be held by a thread that the child does not have, over calls of libhcamem, which
 * has fork handlers of its own: so it is not waited for, but made anew. */
static void after_fork_in_child(void) {
    pthread_mutex_init(&making, NULL);
    begin_anew();
}

/* A child cannot go on with what is half loaded. dladdr() waits for the loader, unless it is the
 * caller who holds that: then the child does without. */
static void before_fork(void) {
    for (unsigned left = atomic_load(&loading); left != 0; --left) {
        Dl_info info;
        dladdr(&library, &info);
    }
    lock_pieces();
}

/* Before that of the malloc family. */
__attribute__((constructor(102))) static void begin(void) {
    void* const page =
        mmap(NULL, sizeof *is_known, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED && madvise(page, sizeof *is_known, MADV_WIPEONFORK) == 0) {
        is_known = page;
        atomic_store(is_known, true);
    }
    pthread_atfork(before_fork, unlock_pieces, after_fork_in_child);
}

/* A child made by a bare clone() has had no fork handler run. */
static void enter(void) {
    if (is_known != NULL && !atomic_load(is_known)) {
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

/*
 * No lock is held over dlopen(), which waits for whoever runs constructors, and those may come
 * here. Two threads may so load it at once; the one is as good as the other.
 */
static bool have_library(const char** why) {
    if (atomic_load(&library_loaded)) {
        return true;
    }
    if (atomic_load(&cut_short)) {
        *why = "the parent was loading libhcamem when this process was forked";
        return false;
    }
    struct library loaded;
    atomic_fetch_add(&loading, 1);
    const bool good = load_library(&loaded, why);
    atomic_fetch_sub(&loading, 1);
    if (!good) {
        return false;
    }
    pthread_mutex_lock(&making);
    if (!atomic_load(&library_loaded)) {
        library = loaded;
        atomic_store(&library_loaded, true);
    }
    pthread_mutex_unlock(&making);
    return true;
}

void load_early(void) {
    const char* why = NULL;
    if (settings.take) {
        have_library(&why); /* why not is said when memory is wanted */
    }
}

/* Whatever HCAMEM_FORK says: exit handlers of a child go over its parent's memory, and give back
 * what is not theirs. */
static void wipe_in_children(struct hcamem_options* options) {
    if (options->fork != HCAMEM_FORK_ZERO && !atomic_load(&is_child)) {
        say("HCAMEM_FORK=%s is ignored: memory taken here is zeroed in a child",
            secure_getenv("HCAMEM_FORK"));
    }
    options->fork = HCAMEM_FORK_ZERO;
}

/* NULL: *why says why there is none. */
static hcamem_pool* open_pool(const char** why) {
    hcamem_pool* found = atomic_load(&pool);
    if (found != NULL || !have_library(why)) {
        return found;
    }
    pthread_mutex_lock(&making);
    found = atomic_load(&pool);
    if (found == NULL) {
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
        wipe_in_children(&options);
        if (library.pool_create(&options, &found) == 0) {
            struct hcamem_stats stats = {.size = sizeof stats};
            library.stats(found, &stats);
            maximum = stats.maximum;
            atomic_store(&pool, found);
        } else {
            found = NULL;
            *why = library.last_message();
        }
    }
    pthread_mutex_unlock(&making);
    return found;
}

/* One that no pool could serve is no reason to take no more. */
static enum outcome refuse_one(const char* owner, const char* name, size_t bytes) {
    static atomic_bool said;
    /* Beyond the addresses of any process, nobody expects to get it. */
    if (bytes >> 48 == 0 && !atomic_exchange(&said, true)) {
        say("%zu KiB for %s of %s: more than the pool's maximum of %zu KiB (HCAMEM_MAXIMUM)%s",
            bytes / 1024, name, owner, maximum / 1024,
            settings.strict ? "" : "; ordinary memory is used for it");
    }
    errno = ENOMEM;
    return settings.strict ? failed : untouched;
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
    if (bytes > maximum) {
        return refuse_one(owner, name, bytes);
    }
    *memory = library.alloc(from, bytes, align, 0);
    return *memory != NULL ? done : fall_back(owner, name, bytes, errno, library.last_message());
}
