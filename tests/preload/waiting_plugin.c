/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A plug-in whose constructor, which runs under the loader's lock, waits for a thread that uses
 * the malloc family: for the first time, as far as the program goes. */
#include <pthread.h>
#include <stdlib.h>

enum { small = 100, large = 100000 };

static void* allocate(void* unused) {
    (void)unused;
    void* volatile block = malloc(small);
    block = realloc(block, large);
    free(block);
    return NULL;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate, NULL) != 0) {
        abort();
    }
    pthread_join(thread, NULL);
    free(allocate(NULL));
}
