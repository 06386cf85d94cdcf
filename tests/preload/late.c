/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Preloaded behind the library: its destructor is called after the library's, and calls back. */
#include <unistd.h>

void (*late_call)(void);

__attribute__((destructor)) static void end(void) {
    static const char line[] = "late destructor\n";
    if (write(STDERR_FILENO, line, sizeof line - 1) < 0) {
        _exit(1);
    }
    if (late_call != NULL) {
        late_call();
    }
}
