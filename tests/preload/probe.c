/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What MPI libraries do with UCX, libibverbs and libfabric, on the fakes: loads them as
 * plug-ins are, out of sight of others. usage: probe FAKES SCENE; prints what the tests ask
 * for as NAME=VALUE lines; status 1 and a line on standard error if something is wrong.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fakes/fakes.h"

enum { KiB = 1024, MiB = 1024 * KiB };

static __typeof__(&fake_counts) counts;
static __typeof__(&fake_open) open_hca;
static __typeof__(&fake_grow) grow;
static __typeof__(&fake_shrink) shrink;
static __typeof__(&fake_free) free_only;
static __typeof__(&fake_dereg) dereg;
static __typeof__(&fake_reg) reg;
static __typeof__(&fake_domain) domain;
static __typeof__(&fake_region) region;
static __typeof__(&fake_region_free) region_free;

__attribute__((noreturn)) static void wrong(const char* what) {
    fprintf(stderr, "probe: %s\n", what);
    exit(EXIT_FAILURE);
}

static void require(int condition, const char* what) {
    if (!condition) {
        wrong(what);
    }
}

static void* load(const char* folder, const char* name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    void* const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    require(handle != NULL, dlerror() != NULL ? "a fake cannot be loaded" : "?");
    return handle;
}

static void* symbol(void* from, const char* name) {
    void* const found = dlsym(from, name);
    require(found != NULL, name);
    return found;
}

static void load_fakes(const char* folder) {
    void* const uct = load(folder, "libuct.so.0");
    void* const fabric = load(folder, "libfabric.so.1");
    *(void**)&counts = symbol(uct, "fake_counts");
    *(void**)&open_hca = symbol(uct, "fake_open");
    *(void**)&grow = symbol(uct, "fake_grow");
    *(void**)&shrink = symbol(uct, "fake_shrink");
    *(void**)&free_only = symbol(uct, "fake_free");
    *(void**)&dereg = symbol(uct, "fake_dereg");
    *(void**)&reg = symbol(uct, "fake_reg");
    *(void**)&domain = symbol(fabric, "fake_domain");
    *(void**)&region = symbol(fabric, "fake_region");
    *(void**)&region_free = symbol(fabric, "fake_region_free");
}

static void use(struct fake_piece* piece, int value) {
    memset(piece->memory, value, piece->bytes);
}

static int holds(const struct fake_piece* piece, int value) {
    const unsigned char* bytes = piece->memory;
    return bytes[0] == value && bytes[piece->bytes / 2] == value &&
           bytes[piece->bytes - 1] == value;
}

static struct fake_piece must_grow(const char* pool, size_t bytes, struct ibv_pd* pd) {
    struct fake_piece piece;
    require(grow(pool, bytes, pd, &piece) == 0, "a pool could not grow");
    use(&piece, 7);
    return piece;
}

static void pools(struct ibv_pd* pd) {
    static const char* const names[] = {"rc_recv_desc", "rc_send_desc", "rc_verbs_short_desc",
                                        "ud_recv_skb",  "ud_tx_skb",    "tag_eager_send_desc",
                                        "mm_recv_desc", "mm_recv_fifo", "user memory"};
    struct fake_piece pieces[sizeof names / sizeof names[0]];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        pieces[i] = must_grow(names[i], MiB + i * 100, pd);
        printf("%s=%s\n", names[i], pieces[i].real ? "other" : "ours");
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        require(holds(&pieces[i], 7), "memory was given twice");
        shrink(&pieces[i]);
    }
    require(counts()->registered == counts()->deregistered, "a memory region is left");
}

/* UCX frees first and deregisters later. */
static void hold(struct ibv_pd* pd) {
    struct fake_piece first = must_grow("rc_recv_desc", 3 * MiB, pd);
    use(&first, 1);
    free_only(&first);
    struct fake_piece second = must_grow("rc_send_desc", 2 * MiB, pd);
    use(&second, 2);
    require(holds(&first, 1), "memory with a memory region on it was given away");
    struct fake_piece same = must_grow("rc_recv_desc", 3 * MiB, NULL);
    printf("reused=%d\n", same.memory == first.memory);
    free_only(&same);
    require(dereg(first.mr) == 0, "a memory region cannot be taken down");
    shrink(&second);
    struct fake_piece third = must_grow("rc_recv_desc", 3 * MiB, pd);
    shrink(&third);
}

/* Every access flag of libibverbs, on odd ranges. */
static void access_flags(struct ibv_pd* pd) {
    struct fake_piece piece = must_grow("rc_recv_desc", 3 * MiB, NULL);
    char* const memory = piece.memory;
    /* local write, remote write, read, atomic, window, zero-based, on demand, huge, relaxed */
    for (unsigned bit = 0; bit <= 20; bit = bit == 8 ? 20 : bit + 1) {
        const unsigned flag = 1U << bit;
        void* const at = memory + 0x4150 + bit;
        struct ibv_mr* const mr = reg(pd, at, 100 * KiB + bit, (uintptr_t)at, flag | 1U);
        require(mr != NULL, "an access flag was refused");
        printf("access%u=%s\n", bit, (counts()->last_access & flag) != 0 ? "kept" : "dropped");
        require(dereg(mr) == 0, "dereg");
    }
    struct ibv_mr* const mr = reg(pd, memory, 4096, 0, 1);
    require(mr != NULL && dereg(mr) == 0, "an iova of its own was refused");
    shrink(&piece);
}

static void in_child(struct ibv_pd* pd) {
    struct fake_piece mine = must_grow("rc_recv_desc", MiB, pd);
    const unsigned long before = counts()->deregistered;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const unsigned char* const bytes = mine.memory;
        require(bytes[0] == 0 && bytes[MiB - 1] == 0, "a child sees its parent's buffers");
        shrink(&mine); /* as an exit handler would */
        require(counts()->deregistered == before, "a child took its parent's registration down");
        struct fake_piece own = must_grow("rc_recv_desc", MiB, NULL);
        printf("child=%s\n", own.real ? "other" : "ours");
        shrink(&own);
        exit(EXIT_SUCCESS);
    }
    int status = -1;
    require(waitpid(child, &status, 0) == child && status == 0, "the child failed");
    require(holds(&mine, 7), "the parent's buffer changed");
    shrink(&mine);
}

static void* storm(void* pd) {
    for (int i = 0; i < 40; ++i) {
        struct fake_piece piece;
        require(grow(i % 2 != 0 ? "rc_recv_desc" : "ud_tx_skb", 300 * KiB, pd, &piece) == 0,
                "grow");
        use(&piece, i);
        require(holds(&piece, i), "two threads have the same memory");
        shrink(&piece);
    }
    return NULL;
}

/* Forks meanwhile: no child may wait for a lock of a thread that it does not have. */
static void threads(struct ibv_pd* pd) {
    pthread_t thread[4];
    for (int i = 0; i < 4; ++i) {
        require(pthread_create(&thread[i], NULL, storm, pd) == 0, "pthread_create");
    }
    for (int i = 0; i < 20; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            struct fake_piece own;
            alarm(180);
            _exit(grow("rc_recv_desc", 300 * KiB, NULL, &own) == 0 ? 0 : 1);
        }
        int status = -1;
        require(waitpid(child, &status, 0) == child && status == 0, "a child hangs or fails");
    }
    for (int i = 0; i < 4; ++i) {
        pthread_join(thread[i], NULL);
    }
}

static void fabric(struct ibv_pd* pd) {
    (void)pd;
    void* const before = region(4 * MiB); /* libfabric has not opened verbs yet */
    struct ibv_pd* const own = domain(open_hca());
    void* const large = region(4 * MiB);
    void* const small = region(4 * KiB);
    struct ibv_mr* const mr = reg(own, (char*)large + 0x4150, MiB, (uintptr_t)large + 0x4150, 0xf);
    require(mr != NULL && dereg(mr) == 0, "a part of a region was not registered");
    memset(large, 3, 4 * MiB);
    region_free(before);
    region_free(large);
    region_free(small);
    region_free(NULL);
}

/* After the library's destructor, if liblate.so is preloaded behind it. */
static void call_late(void (*function)(void)) {
    void (**call)(void) = dlsym(RTLD_DEFAULT, "late_call");
    if (call != NULL) {
        *call = function;
    }
}

/* Like hold() without an end: what is given back before the library's destructor, and after. */
static struct fake_piece left;
static struct fake_piece left_late;
static void at_exit(void) {
    fputs("exit handler\n", stderr);
    shrink(&left);
}
static void late_exit(void) {
    shrink(&left_late);
}
static void exits(struct ibv_pd* pd) {
    left = must_grow("rc_recv_desc", MiB, pd);
    left_late = must_grow("rc_send_desc", MiB, pd);
    atexit(at_exit);
    call_late(late_exit);
}

/* As programs do that become daemons: all descriptors are closed, and their numbers used. */
static int reused;
static void late_look(void) {
    struct stat file;
    fputs(fstat(reused, &file) == 0 && file.st_size == 0 ? "late look: nothing was written\n"
                                                         : "late look: the report\n",
          stderr);
}
static void reuse(struct ibv_pd* pd) {
    (void)pd;
    require(close_range(STDERR_FILENO + 1, ~0U, 0) == 0, "close_range");
    reused = memfd_create("reused", 0);
    for (int number = reused + 1; number < 250; ++number) {
        require(dup2(reused, number) == number, "dup2");
    }
    call_late(late_look);
}

/* What is not said to have failed is looked at by the test: which memory each got. */
static void refusals(struct ibv_pd* pd) {
    for (int i = 0; i < 3; ++i) {
        struct fake_piece piece;
        const int result = grow("rc_recv_desc", MiB, pd, &piece);
        printf("grow%d=%s\n", i, result != 0 ? "failed" : piece.real ? "other" : "ours");
        if (result == 0) {
            shrink(&piece);
        }
    }
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*scene)(struct ibv_pd*);
    } scenes[] = {
        {"pools", pools},   {"hold", hold},         {"access", access_flags},
        {"fork", in_child}, {"threads", threads},   {"fabric", fabric},
        {"exit", exits},    {"refusals", refusals}, {"reuse", reuse},
    };
    require(argc == 3, "usage: probe FAKES SCENE");
    load_fakes(argv[1]);
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; ++i) {
        if (strcmp(scenes[i].name, argv[2]) == 0) {
            struct ibv_pd* const pd = malloc(256);
            memset(pd, 0, 256);
            *(struct ibv_context**)pd = open_hca();
            scenes[i].scene(pd);
            free(pd);
            return EXIT_SUCCESS;
        }
    }
    wrong("no such scene");
}
