/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#define _GNU_SOURCE
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings.h"

enum { most_pools = 64, most_ranges = 256, name_bytes = 48 };

struct pool_count {
    char owner[16];
    char name[name_bytes];
    bool taken;
    size_t pieces;
    size_t bytes; /* of all those pieces, one after the other */
    size_t in_use;
    size_t most; /* in use at once; other memory is not followed, and counts as kept */
};

/* Where the pieces were, so that what the kernel did at those addresses can be looked up. */
struct range {
    uintptr_t begin;
    size_t bytes;
    unsigned pool;
};

static struct {
    pthread_mutex_t lock;
    unsigned pools;
    struct pool_count pool[most_pools];
    unsigned ranges;
    struct range range[most_ranges];
    unsigned long registrations[registered_kinds];
    unsigned long by_ucx; /* of other memory */
    char fall_back[512];
} counts = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct pool_count* pool_of(const char* owner, const char* name, bool taken) {
    for (unsigned i = 0; i < counts.pools; ++i) {
        struct pool_count* const each = &counts.pool[i];
        if (each->taken == taken && strcmp(each->owner, owner) == 0 &&
            strncmp(each->name, name, name_bytes - 1) == 0) {
            return each;
        }
    }
    if (counts.pools == most_pools) {
        return &counts.pool[most_pools - 1];
    }
    struct pool_count* const made = &counts.pool[counts.pools++];
    *made = (struct pool_count){.taken = taken};
    snprintf(made->owner, sizeof made->owner, "%s", owner);
    snprintf(made->name, sizeof made->name, "%s", name);
    return made;
}

unsigned report_piece(const char* owner, const char* name, bool taken, const void* memory,
                      size_t bytes) {
    pthread_mutex_lock(&counts.lock);
    struct pool_count* const pool = pool_of(owner, name, taken);
    ++pool->pieces;
    pool->bytes += bytes;
    pool->in_use += bytes;
    pool->most = pool->in_use > pool->most ? pool->in_use : pool->most;
    const unsigned number = (unsigned)(pool - counts.pool);
    if (counts.ranges < most_ranges) {
        counts.range[counts.ranges++] = (struct range){(uintptr_t)memory, bytes, number};
    }
    pthread_mutex_unlock(&counts.lock);
    return number;
}

void report_given_back(unsigned number, size_t bytes) {
    pthread_mutex_lock(&counts.lock);
    counts.pool[number].in_use -= bytes;
    pthread_mutex_unlock(&counts.lock);
}

void report_registration(enum registered kind, bool from_ucx) {
    pthread_mutex_lock(&counts.lock);
    ++counts.registrations[kind];
    counts.by_ucx += from_ucx;
    pthread_mutex_unlock(&counts.lock);
}

void report_fall_back(const char* why) {
    pthread_mutex_lock(&counts.lock);
    snprintf(counts.fall_back, sizeof counts.fall_back, "%s", why);
    pthread_mutex_unlock(&counts.lock);
}

void report_forget(void) {
    pthread_mutex_init(&counts.lock, NULL);
    counts.pools = 0;
    counts.ranges = 0;
    counts.by_ucx = 0;
    counts.fall_back[0] = '\0';
    memset(counts.registrations, 0, sizeof counts.registrations);
}

/* A text that is cut off rather than grown: nothing is allocated while the process ends. */
struct text {
    char* to;
    size_t room;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void put(struct text* text, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(text->to + text->length, text->room - text->length, format, arguments);
    va_end(arguments);
    if (length > 0) {
        const size_t end = text->length + (size_t)length;
        text->length = end < text->room - 1 ? end : text->room - 1;
    }
}

static void put_string(struct text* text, const char* string) {
    put(text, "\"");
    for (; *string != '\0'; ++string) {
        const unsigned char each = (unsigned char)*string;
        if (each == '"' || each == '\\') {
            put(text, "\\%c", each);
        } else if (each < 0x20) {
            put(text, "\\u%04x", each);
        } else {
            put(text, "%c", each);
        }
    }
    put(text, "\"");
}

/* UCX registers, but does not come here for memory: its calls are bound within libuct. */
static bool is_out_of_reach(void) {
    bool seen = false;
    for (unsigned i = 0; i < counts.pools; ++i) {
        seen = seen || strcmp(counts.pool[i].owner, "ucx") == 0;
    }
    return counts.by_ucx != 0 && !seen;
}

static void put_json_pool(struct text* text, unsigned index) {
    const struct pool_count* const pool = &counts.pool[index];
    put(text, "%s{\"owner\":", index != 0 ? "," : "");
    put_string(text, pool->owner);
    put(text, ",\"name\":");
    put_string(text, pool->name);
    put(text, ",\"taken\":%d,\"pieces\":%zu,\"bytes\":%zu,\"most_bytes\":%zu,\"ranges\":[",
        pool->taken, pool->pieces, pool->bytes, pool->most);
    const char* comma = "";
    for (unsigned i = 0; i < counts.ranges; ++i) {
        if (counts.range[i].pool == index) {
            put(text, "%s[%zu,%zu]", comma, (size_t)counts.range[i].begin, counts.range[i].bytes);
            comma = ",";
        }
    }
    put(text, "]}");
}

static void put_json(struct text* text) {
    put(text, "{\"pid\":%d,\"program\":", (int)getpid());
    put_string(text, program_invocation_short_name);
    put(text, ",\"pools\":[");
    for (unsigned i = 0; i < counts.pools; ++i) {
        put_json_pool(text, i);
    }
    put(text,
        "],\"registrations\":{\"dmabuf\":%lu,\"user_pages\":%lu,\"passed_through\":%lu,"
        "\"other_memory\":%lu},\"out_of_reach\":%d,\"fall_back\":",
        counts.registrations[by_dmabuf], counts.registrations[by_user_pages],
        counts.registrations[passed_through], counts.registrations[of_other_memory],
        is_out_of_reach());
    put_string(text, counts.fall_back);
    put(text, "}\n");
}

static void put_table(struct text* text) {
    put(text, "hcamem: report of process %d, %s\n", (int)getpid(), program_invocation_short_name);
    for (unsigned i = 0; i < counts.pools; ++i) {
        const struct pool_count* const pool = &counts.pool[i];
        put(text, "hcamem:   %-10s %-24s %9.1f MiB %s %zu pieces%s\n", pool->owner, pool->name,
            (double)pool->most / (1 << 20), pool->taken ? "at once," : "in", pool->pieces,
            pool->taken ? "" : ", not taken");
    }
    if (counts.pools == 0) {
        put(text, "hcamem:   no memory was asked for by UCX or libfabric\n");
    }
    put(text,
        "hcamem:   registrations: %lu by dma-buf, %lu by ibv_reg_mr, %lu passed through, %lu of "
        "other memory\n",
        counts.registrations[by_dmabuf], counts.registrations[by_user_pages],
        counts.registrations[passed_through], counts.registrations[of_other_memory]);
    if (is_out_of_reach()) {
        put(text, "hcamem:   UCX was not reached: it registers, but its allocations are bound "
                  "within libuct (-Bsymbolic-functions)\n");
    }
    if (counts.fall_back[0] != '\0') {
        put(text, "hcamem:   fell back to ordinary memory: %s\n", counts.fall_back);
    }
}

/* One write() each, so that the lines of several processes do not mix. */
static void write_report(const struct text* text) {
    int to = -1;
    if (settings.report_path == NULL) {
        to = report_descriptor();
    } else {
        to = open(settings.report_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (to < 0) {
            say("the report cannot be written to %s: %s", settings.report_path, strerror(errno));
            return;
        }
    }
    if (write(to, text->to, text->length) != (ssize_t)text->length) {
        say("the report is not complete");
    }
    if (settings.report_path != NULL) {
        close(to);
    }
}

__attribute__((destructor)) static void report(void) {
    static char room[64 * 1024];
    struct text text = {.to = room, .room = sizeof room};
    if (!settings.report) {
        return;
    }
    pthread_mutex_lock(&counts.lock);
    if (settings.report_path != NULL) {
        put_json(&text);
    } else {
        put_table(&text);
    }
    pthread_mutex_unlock(&counts.lock);
    write_report(&text);
}
