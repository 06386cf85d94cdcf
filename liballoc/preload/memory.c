/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Locks: `making` is held while the pool is made, `lock` guards the tables. No call of
 * libhcamem is made under `lock`: it maps and unmaps, which UCX hears of, and UCX then
 * deregisters what it no longer needs, and so comes back to us.
 */
#define _GNU_SOURCE
#include "memory.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"
#include "report.h"
#include "settings.h"

enum { page = 4096 };

struct piece {
    struct piece* next;
    char* memory;
    size_t bytes;
    unsigned mrs;
    bool given_back; /* by its owner, while there are memory regions on it */
    bool inherited;  /* the parent's: here it is private memory of zeros */
};

struct region {
    struct region* next;
    struct ibv_mr* mr;
    hcamem_registration* registration;
    struct piece* on; /* NULL: memory that was not taken as a piece */
};

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct library library;
static bool library_loaded;
static _Atomic(hcamem_pool*) pool;
static atomic_bool failed_before;
static struct piece* pieces;
static struct region* regions;
static atomic_uint region_count;
static atomic_int process;               /* whose all this is */
static _Atomic(hcamem_pool*) block_pool; /* of take_block() */
static atomic_bool is_child;

/* Set while libhcamem registers, which it may do by ibv_reg_mr(). */
static __thread bool registering __attribute__((tls_model("initial-exec")));

static void begin_anew(void) {
    for (struct piece* each = pieces; each != NULL; each = each->next) {
        each->inherited = true;
    }
    atomic_store(&pool, NULL);
    atomic_store(&failed_before, false);
    atomic_store(&process, getpid());
    atomic_store(&is_child, true);
    report_forget();
}

static void before_fork(void) {
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void) {
    pthread_mutex_unlock(&lock);
}

/* `making` may be held by a thread that the child does not have, over calls of libhcamem, which
 * has fork handlers of its own: so it is not waited for, but made anew. */
static void after_fork_in_child(void) {
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&making, NULL);
    begin_anew();
}

__attribute__((constructor)) static void begin(void) {
    atomic_store(&process, getpid());
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* A child made by a bare clone() has had no fork handler run. */
static void enter(void) {
    const int known = atomic_load(&process);
    if (known != 0 && known != getpid()) {
        after_fork_in_child();
    }
}

/* What is refused for whom, and what the user can do, once; then no more is taken. */
static enum outcome fall_back(const char* owner, const char* name, size_t bytes, int error,
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

static size_t in_pages(size_t bytes) {
    return (bytes + page - 1) / page * page;
}

/* One that its owner gave back and that UCX's cache keeps registered. Under `lock`. */
static struct piece* find_held(size_t bytes, size_t align) {
    for (struct piece* each = pieces; each != NULL; each = each->next) {
        if (each->given_back && !each->inherited && each->bytes == bytes &&
            (uintptr_t)each->memory % align == 0) {
            return each;
        }
    }
    return NULL;
}

/* Under `lock`. */
static struct piece* find_piece(const void* address, size_t bytes) {
    const char* const begin = address;
    for (struct piece* each = pieces; each != NULL; each = each->next) {
        if (begin >= each->memory && begin < each->memory + each->bytes &&
            bytes <= (size_t)(each->memory + each->bytes - begin)) {
            return each;
        }
    }
    return NULL;
}

/* Under `lock`. */
static void unlink_piece(struct piece* ended) {
    struct piece** link = &pieces;
    while (*link != ended) {
        link = &(*link)->next;
    }
    *link = ended->next;
}

enum outcome take_memory(const char* owner, const char* name, size_t wanted, size_t align,
                         void** memory, size_t* bytes) {
    if (wanted == 0 || wanted > SIZE_MAX / 2 || align > HCAMEM_SLAB_UNIT) {
        return untouched;
    }
    enter();
    if (!settings.take) {
        return untouched;
    }
    if (atomic_load(&failed_before)) {
        errno = ENOMEM;
        return settings.strict ? failed : untouched;
    }
    *bytes = in_pages(wanted);
    align = align > page ? align : page;
    pthread_mutex_lock(&lock);
    struct piece* made = find_held(*bytes, align);
    if (made != NULL) {
        made->given_back = false;
    }
    pthread_mutex_unlock(&lock);
    if (made == NULL) {
        const char* why = "?";
        hcamem_pool* const from = open_pool(&why);
        if (from == NULL) {
            return fall_back(owner, name, *bytes, ENOMEM, why);
        }
        made = calloc(1, sizeof *made);
        char* const fresh = made != NULL ? library.alloc(from, *bytes, align, 0) : NULL;
        if (fresh == NULL) {
            const int error = errno;
            const char* text = made != NULL ? library.last_message() : "no memory";
            free(made);
            return fall_back(owner, name, *bytes, error, text);
        }
        made->memory = fresh;
        made->bytes = *bytes;
        pthread_mutex_lock(&lock);
        made->next = pieces;
        pieces = made;
        pthread_mutex_unlock(&lock);
    }
    *memory = made->memory;
    report_piece(owner, name, true, *memory, *bytes);
    return done;
}

void note_other_memory(const char* owner, const char* name, const void* memory, size_t bytes) {
    report_piece(owner, name, false, memory, bytes);
}

atomic_uintptr_t blocks_begin = UINTPTR_MAX;
atomic_uintptr_t blocks_end;

static void widen(const void* block, size_t bytes) {
    const uintptr_t begin = (uintptr_t)block;
    uintptr_t known = atomic_load(&blocks_begin);
    while (begin < known && !atomic_compare_exchange_weak(&blocks_begin, &known, begin)) {
    }
    known = atomic_load(&blocks_end);
    while (begin + bytes > known &&
           !atomic_compare_exchange_weak(&blocks_end, &known, begin + bytes)) {
    }
}

enum { kept_idle = 64 << 20, large_block = 1 << 20 }; /* bytes */

enum outcome take_block(const char* owner, const char* name, size_t bytes, size_t align,
                        void** block) {
    enter();
    if (!settings.take || align > HCAMEM_SLAB_UNIT || atomic_load(&is_child)) {
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
    atomic_store(&block_pool, from);
    *block = library.alloc(from, bytes, align, 0);
    if (*block == NULL) {
        const int error = errno;
        return fall_back(owner, name, bytes, error, library.last_message());
    }
    widen(*block, bytes);
    report_piece(owner, name, true, *block, bytes);
    return done;
}

void give_back_block(void* block) {
    enter();
    hcamem_pool* const from = atomic_load(&block_pool);
    if (atomic_load(&is_child)) {
        return;
    }
    const bool large = library.usable(from, block) >= large_block;
    library.free(from, block);
    if (large) {
        library.trim(from, kept_idle);
    }
}

size_t block_bytes(const void* block) {
    hcamem_pool* const from = atomic_load(&block_pool);
    enter();
    return atomic_load(&is_child) ? 0 : library.usable(from, block);
}

/* The caller has taken it off the table. */
static void release(struct piece* ended, bool trim) {
    hcamem_pool* const from = atomic_load(&pool);
    if (!ended->inherited && from != NULL) {
        library.free(from, ended->memory);
        if (trim) {
            library.trim(from, 0);
        }
    }
    free(ended);
}

enum outcome give_back_memory(const void* memory) {
    if (memory == NULL) {
        return untouched;
    }
    enter();
    pthread_mutex_lock(&lock);
    struct piece* const found = find_piece(memory, 0);
    const bool ours = found != NULL && found->memory == memory && !found->given_back;
    const bool held = ours && found->mrs != 0 && !found->inherited;
    if (held) {
        found->given_back = true;
    } else if (ours) {
        unlink_piece(found);
    }
    pthread_mutex_unlock(&lock);
    if (ours && !held) {
        release(found, true);
    }
    return ours ? done : untouched;
}

bool is_registering(void) {
    return registering;
}

enum outcome register_memory(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                             int access, struct ibv_mr** mr) {
    hcamem_pool* const from = atomic_load(&pool);
    if (from == NULL || registering || length == 0) {
        return untouched;
    }
    enter();
    if (atomic_load(&pool) != from || !library.owns(from, address) ||
        !library.owns(from, (char*)address + length - 1)) {
        return untouched;
    }
    if (iova != (uintptr_t)address ||
        (access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED)) != 0) {
        report_registration(passed_through, false);
        return untouched;
    }
    struct region* const made = calloc(1, sizeof *made);
    if (made == NULL) {
        errno = ENOMEM;
        return failed;
    }
    pthread_mutex_lock(&lock);
    made->on = find_piece(address, length);
    if (made->on != NULL) {
        ++made->on->mrs;
    }
    pthread_mutex_unlock(&lock);

    /* Says that the memory is of huge pages; this is not for the registration to know. */
    access &= ~IBV_ACCESS_HUGETLB;
    registering = true;
    const int result = library.reg(from, pd, address, length, access, &made->registration);
    registering = false;

    pthread_mutex_lock(&lock);
    if (result == 0) {
        struct hcamem_key key;
        library.key(made->registration, &key);
        made->mr = key.mr;
        made->next = regions;
        regions = made;
        atomic_fetch_add(&region_count, 1);
        *mr = key.mr;
        pthread_mutex_unlock(&lock);
        report_registration(key.path == HCAMEM_PATH_DMABUF       ? by_dmabuf
                            : (access & IBV_ACCESS_MW_BIND) != 0 ? passed_through
                                                                 : by_user_pages,
                            false);
        return done;
    }
    if (made->on != NULL) {
        --made->on->mrs;
    }
    pthread_mutex_unlock(&lock);
    free(made);
    fall_back("the program", "a registration", length, -result, library.last_message());
    errno = -result;
    return failed;
}

enum outcome deregister_memory(struct ibv_mr* mr) {
    if (atomic_load(&region_count) == 0) {
        return untouched;
    }
    enter();
    pthread_mutex_lock(&lock);
    struct region** link = &regions;
    while (*link != NULL && (*link)->mr != mr) {
        link = &(*link)->next;
    }
    struct region* const found = *link;
    if (found != NULL) {
        *link = found->next;
        atomic_fetch_sub(&region_count, 1);
    }
    pthread_mutex_unlock(&lock);
    if (found == NULL) {
        return untouched;
    }

    /* It is off the table: libhcamem's own ibv_dereg_mr() is not ours again. */
    const int result = library.unreg(found->registration);
    pthread_mutex_lock(&lock);
    struct piece* last = NULL;
    if (result != 0) {
        found->next = regions;
        regions = found;
        atomic_fetch_add(&region_count, 1);
    } else if (found->on != NULL && --found->on->mrs == 0 && found->on->given_back) {
        last = found->on;
        unlink_piece(last);
    }
    pthread_mutex_unlock(&lock);
    if (result != 0) {
        errno = -result;
        return failed;
    }
    free(found);
    if (last != NULL) {
        /* UCX may hold its cache's lock: what is unmapped here would have it take that again. */
        release(last, false);
    }
    return done;
}
