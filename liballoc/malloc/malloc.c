/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The malloc family, for programs that register memory they allocate themselves and use neither
 * UCX nor libfabric. Blocks of HCAMEM_MALLOC_THRESHOLD bytes or more come from the pool, smaller
 * ones from glibc.
 *
 * A child of fork() finds its parent's blocks zeroed, and allocates from glibc only: this is for
 * programs whose children do nothing but exec. What they exec, a shell above all, is another
 * program: so this library is preloaded in one program only, not in those that it starts.
 *
 * Nothing is taken before the constructors ran, nor from inside libhcamem, whose own
 * allocations are glibc's. No call waits for the loader, which may be running a constructor that
 * waits for the caller. Compiled with -fno-builtin, or the compiler would make a calloc()
 * that calls calloc().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "environment.h"
#include "preload/blocks.h"
#include "preload/export.h"
#include "preload/memory.h"
#include "preload/settings.h"
#include "threshold.h"

enum { page = 4096, libc_align = 16 };

/* glibc's, under the names that nobody stands in front of. */
extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* block, size_t bytes);
extern void* __libc_memalign(size_t align, size_t bytes);
extern void __libc_free(void* block);

static size_t threshold = SIZE_MAX; /* until the constructor has run */

static struct block_user user = {.owner = "malloc", .name = "blocks"};

/* Set while the calling thread is in libhcamem. */
static __thread bool busy __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void begin(void) {
    leave_environment();
    find_libc_usable_size();
    load_early();
    threshold = read_threshold();
}

static enum outcome take(size_t bytes, size_t align, void** block) {
    if (busy) {
        return untouched;
    }
    busy = true;
    const enum outcome result = take_block(&user, bytes, align, block);
    busy = false;
    return result;
}

static size_t usable(const void* block) {
    const bool before = busy;
    busy = true;
    const size_t bytes = block_bytes(block);
    busy = before;
    return bytes;
}

/* What glibc gave in place of a block of the pool; for the report. */
static void* note(void* block, size_t bytes) {
    if (block != NULL && !busy) {
        note_other_memory(user.owner, user.name, block, bytes);
    }
    return block;
}

/* Alignment 0: what malloc() promises. */
static void* allocate(size_t bytes, size_t align) {
    void* block = NULL;
    if (bytes < threshold) {
        return align <= libc_align ? __libc_malloc(bytes) : __libc_memalign(align, bytes);
    }
    if (take(bytes, align, &block) != untouched) {
        return block;
    }
    return note(align <= libc_align ? __libc_malloc(bytes) : __libc_memalign(align, bytes), bytes);
}

HOOK void* malloc(size_t bytes) {
    return bytes < threshold ? __libc_malloc(bytes) : allocate(bytes, 0);
}

HOOK void free(void* block) {
    if (!is_block(block)) {
        __libc_free(block);
        return;
    }
    const int saved = errno;
    const bool before = busy;
    busy = true;
    give_back_block(&user, block);
    busy = before;
    errno = saved;
}

/* Of C23; glibc 2.36 neither has nor declares them. */
void free_sized(void* block, size_t bytes);
void free_aligned_sized(void* block, size_t align, size_t bytes);

HOOK void free_sized(void* block, size_t bytes) {
    (void)bytes;
    free(block);
}

HOOK void free_aligned_sized(void* block, size_t align, size_t bytes) {
    (void)align, (void)bytes;
    free(block);
}

HOOK void* calloc(size_t count, size_t bytes) {
    size_t all = 0;
    if (__builtin_mul_overflow(count, bytes, &all) || all < threshold) {
        return __libc_calloc(count, bytes);
    }
    void* block = NULL;
    switch (take(all, 0, &block)) {
    case done:
        return memset(block, 0, all); /* it may have been used before */
    case failed:
        return NULL;
    case untouched:
        break;
    }
    return note(__libc_calloc(count, bytes), all); /* which touches no fresh page */
}

/* The old block goes if there is a fresh one. */
static void* move(void* block, size_t held, void* fresh, size_t bytes) {
    if (fresh != NULL) {
        memcpy(fresh, block, held < bytes ? held : bytes);
        free(block);
    }
    return fresh;
}

/* glibc's block may grow where it is. */
static void* resize_ordinary(void* block, size_t bytes) {
    void* fresh = NULL;
    if (bytes < threshold) {
        return __libc_realloc(block, bytes);
    }
    if (take(bytes, 0, &fresh) != untouched) {
        return move(block, libc_usable_size(block), fresh, bytes);
    }
    return note(__libc_realloc(block, bytes), bytes);
}

HOOK void* realloc(void* block, size_t bytes) {
    if (block == NULL) {
        return malloc(bytes);
    }
    if (!is_block(block)) {
        return resize_ordinary(block, bytes);
    }
    if (bytes == 0) {
        free(block);
        return NULL;
    }
    const size_t held = usable(block);
    return bytes <= held && bytes >= held / 2 && bytes >= threshold
               ? block
               : move(block, held, malloc(bytes), bytes);
}

HOOK void* reallocarray(void* block, size_t count, size_t bytes) {
    size_t all = 0;
    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, all);
}

static bool is_power_of_two(size_t number) {
    return number != 0 && (number & (number - 1)) == 0;
}

HOOK int posix_memalign(void** result, size_t align, size_t bytes) {
    if (!is_power_of_two(align) || align % sizeof(void*) != 0) {
        return EINVAL;
    }
    const int saved = errno;
    void* const block = allocate(bytes, align);
    errno = saved;
    if (block == NULL) {
        return ENOMEM;
    }
    *result = block;
    return 0;
}

HOOK void* memalign(size_t align, size_t bytes) {
    return is_power_of_two(align) ? allocate(bytes, align) : __libc_memalign(align, bytes);
}

HOOK void* aligned_alloc(size_t align, size_t bytes) {
    return memalign(align, bytes);
}

HOOK void* valloc(size_t bytes) {
    return allocate(bytes, page);
}

HOOK void* pvalloc(size_t bytes) {
    if (bytes > SIZE_MAX - page) {
        errno = ENOMEM;
        return NULL;
    }
    return allocate((bytes + page - 1) / page * page, page);
}

HOOK size_t malloc_usable_size(void* block) {
    return is_block(block) ? usable(block) : libc_usable_size(block);
}
