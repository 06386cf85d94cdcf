/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Preloaded behind the library: the REFUSE_MPROTECTth call that makes memory writable fails. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int mprotect(void* address, size_t bytes, int protection) {
    static int asked;
    static const char line[] = "refuse_mprotect: refused\n";
    const char* which = getenv("REFUSE_MPROTECT");
    if (which != NULL && protection == (PROT_READ | PROT_WRITE) && ++asked == atoi(which)) {
        errno = write(STDERR_FILENO, line, sizeof line - 1) < 0 ? errno : ENOMEM;
        return -1;
    }
    return (int)syscall(SYS_mprotect, address, bytes, protection);
}
