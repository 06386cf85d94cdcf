/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A program that has nothing to do with RDMA and allocates all the time. */
#include <stdlib.h>

enum { kept = 64, rounds = 100000 };

int main(void) {
    static void* volatile blocks[kept];
    for (unsigned i = 0; i < rounds; ++i) {
        free(blocks[i % kept]);
        blocks[i % kept] = malloc(16 + i % 1000);
    }
    for (unsigned i = 0; i < kept; ++i) {
        free(blocks[i]);
    }
    return EXIT_SUCCESS;
}
