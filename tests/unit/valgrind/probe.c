/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A program with a fault, or without one, for valgrind: probe FAULT */
#include <stdio.h>
#include <string.h>

#include <hcamem.h>

static int read_byte(const volatile char* from) {
    return *from;
}

int main(int argc, char** argv) {
    const char* fault = argc == 2 ? argv[1] : "";
    struct hcamem_options options;
    hcamem_pool* pool;
    hcamem_fixed* fixed;
    char *block, *buffer;
    int seen = 0;

    hcamem_options_init(&options, sizeof(options));
    options.source = HCAMEM_MEMORY;
    options.maximum = (uint64_t)64 << 20;
    if (hcamem_pool_create(&options, &pool) != 0)
        return 2;
    block = hcamem_alloc(pool, 5000, 0, 0);
    fixed = hcamem_fixed_create(pool, 4096, 0, 10, 0);
    buffer = fixed ? hcamem_fixed_get(fixed, 0) : NULL;
    if (!block || !buffer)
        return 2;
    memset(block, 1, hcamem_usable(pool, block));
    memset(buffer, 1, 4096);

    if (!strcmp(fault, "past-the-end"))
        seen = read_byte(block + hcamem_usable(pool, block));
    hcamem_free(pool, block);
    if (!strcmp(fault, "after-free"))
        seen = read_byte(block + 1000);
    if (!strcmp(fault, "never-handed-out"))
        seen = read_byte(hcamem_fixed_at(fixed, hcamem_fixed_index(fixed, buffer) ? 0 : 1));
    hcamem_fixed_put(fixed, buffer);
    if (!strcmp(fault, "after-put"))
        seen = read_byte(buffer);
    if (hcamem_fixed_destroy(fixed) != 0 || hcamem_pool_close(pool) != 0)
        return 2;
    printf("%d\n", seen);
    return 0;
}
