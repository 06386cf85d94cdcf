/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#define _GNU_SOURCE
#include "threshold.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "preload/settings.h"

enum { default_threshold = 64 * 1024, smallest = 4096 };

static unsigned shift_of(const char* unit) {
    if (strcmp(unit, "K") == 0) {
        return 10;
    }
    if (strcmp(unit, "M") == 0) {
        return 20;
    }
    if (strcmp(unit, "G") == 0) {
        return 30;
    }
    return *unit == '\0' ? 0 : 64;
}

size_t read_threshold(void) {
    const char* text = secure_getenv("HCAMEM_MALLOC_THRESHOLD");
    if (text == NULL) {
        return default_threshold;
    }
    char* unit = NULL;
    const unsigned long long number = strtoull(text, &unit, 10);
    const unsigned shift = shift_of(unit);
    if (unit == text || *text == '-' || shift > 30 || number > (SIZE_MAX >> 1) >> shift ||
        number << shift < smallest) {
        say("HCAMEM_MALLOC_THRESHOLD=%s is ignored: bytes, with K, M or G, from 4K on", text);
        return default_threshold;
    }
    return (size_t)number << shift;
}

static size_t (*real_usable_size)(void*);

void find_libc_usable_size(void) {
    void* const found = dlsym(RTLD_NEXT, "malloc_usable_size");
    memcpy(&real_usable_size, &found, sizeof real_usable_size);
}

size_t libc_usable_size(void* block) {
    if (real_usable_size == NULL) {
        find_libc_usable_size(); /* by a constructor before ours */
    }
    return real_usable_size != NULL ? real_usable_size(block) : 0;
}
