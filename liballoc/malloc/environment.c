/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#define _GNU_SOURCE
#include "environment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SELF "libhcamem-malloc.so"

static bool is_self(const char* word, size_t length) {
    const size_t name = strlen(SELF);
    return length >= name && memcmp(word + length - name, SELF, name) == 0 &&
           (length == name || word[length - name - 1] == '/');
}

/* In place: nothing is allocated this early, and who was handed the environment sees it too. */
void leave_environment(void) {
    char* const list = getenv("LD_PRELOAD");
    if (list == NULL) {
        return;
    }
    char* end = list; /* of what stays */
    for (const char* word = list; *word != '\0';) {
        const size_t length = strcspn(word, ": "); /* as the loader takes it apart */
        const size_t with_separator = length + (word[length] != '\0');
        if (!is_self(word, length)) {
            memmove(end, word, with_separator);
            end += with_separator;
        }
        word += with_separator;
    }
    while (end != list && (end[-1] == ':' || end[-1] == ' ')) {
        --end;
    }
    *end = '\0';
    if (*list == '\0') {
        unsetenv("LD_PRELOAD");
    }
}
