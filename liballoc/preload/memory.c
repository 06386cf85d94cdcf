/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * No call of libhcamem is made under the lock of the tables: it maps and unmaps, which UCX
 * hears of, and UCX then deregisters what it no longer needs, and so comes back to us.
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

#include "report.h"

enum { page = 4096 };

struct piece {
    struct piece* next;
    char* memory;
    size_t bytes;
    unsigned mrs;
    unsigned number; /* of its pool in the report */
    bool given_back; /* by its owner, while there are memory regions on it */
    bool inherited;  /* the parent's: here it is private memory of zeros */
};

struct region {
    struct region* next;
    struct ibv_mr* mr;
    hcamem_registration* registration;
    struct piece* on; /* NULL: memory that was not taken as a piece */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece* pieces;
static struct region* regions;
static atomic_uint region_count;

/* Set while libhcamem registers, which it may do by ibv_reg_mr(). */
static __thread bool registering __attribute__((tls_model("initial-exec")));

void lock_pieces(void) {
    pthread_mutex_lock(&lock);
}

void unlock_pieces(void) {
    pthread_mutex_unlock(&lock);
}

void inherit_pieces(void) {
    pthread_mutex_init(&lock, NULL);
    for (struct piece* each = pieces; each != NULL; each = each->next) {
        each->inherited = true;
    }
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

/* A new piece on the table. */
static enum outcome make_piece(const char* owner, const char* name, size_t bytes, size_t align,
                               struct piece** made) {
    struct piece* const fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL) {
        return fall_back(owner, name, bytes, ENOMEM, "no memory");
    }
    void* memory = NULL;
    const enum outcome result = obtain(owner, name, bytes, align, &memory);
    if (result != done) {
        free(fresh);
        return result;
    }
    fresh->memory = memory;
    fresh->bytes = bytes;
    pthread_mutex_lock(&lock);
    fresh->next = pieces;
    pieces = fresh;
    pthread_mutex_unlock(&lock);
    *made = fresh;
    return done;
}

enum outcome take_memory(const char* owner, const char* name, size_t wanted, size_t align,
                         void** memory, size_t* bytes) {
    if (wanted == 0 || wanted > SIZE_MAX / 2) {
        return untouched;
    }
    current_pool(); /* a child finds out that it is one */
    *bytes = in_pages(wanted);
    align = align > page ? align : page;
    pthread_mutex_lock(&lock);
    struct piece* made = find_held(*bytes, align);
    if (made != NULL) {
        made->given_back = false;
    }
    pthread_mutex_unlock(&lock);
    if (made == NULL) {
        const enum outcome result = make_piece(owner, name, *bytes, align, &made);
        if (result != done) {
            return result;
        }
    }
    *memory = made->memory;
    made->number = report_piece(owner, name, true, *memory, *bytes);
    return done;
}

void note_other_memory(const char* owner, const char* name, const void* memory, size_t bytes) {
    report_piece(owner, name, false, memory, bytes);
}

/* The caller has taken it off the table. */
static void release(struct piece* ended, bool trim) {
    hcamem_pool* const from = current_pool();
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
    current_pool(); /* a child finds out that it is one */
    pthread_mutex_lock(&lock);
    struct piece* const found = find_piece(memory, 0);
    const bool ours = found != NULL && found->memory == memory && !found->given_back;
    const bool held = ours && found->mrs != 0;
    if (ours && !found->inherited) {
        report_given_back(found->number, found->bytes);
    }
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
    hcamem_pool* const from = current_pool();
    if (from == NULL || registering || length == 0) {
        return untouched;
    }
    if (!library.owns(from, address) || !library.owns(from, (char*)address + length - 1)) {
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
    current_pool(); /* a child finds out that it is one */
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
