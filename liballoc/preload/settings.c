/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#define _GNU_SOURCE
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct settings settings = {.take = true};

/* A copy of standard error, and which file that is: programs that close all descriptors get the
 * number for files of their own. */
static int kept = -1;
static dev_t kept_device;
static ino_t kept_inode;

void say(const char* format, ...) {
    const int saved = errno;
    char line[1024] = "hcamem: ";
    const size_t begin = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line + begin, sizeof line - begin - 1, format, arguments);
    va_end(arguments);
    if (length >= 0) {
        const size_t end = begin + (size_t)length;
        const size_t last = end < sizeof line - 2 ? end : sizeof line - 2;
        line[last] = '\n';
        if (write(STDERR_FILENO, line, last + 1) < 0) {
            /* There is nobody to tell. */
        }
    }
    errno = saved;
}

static bool flag(const char* name) {
    const char* text = secure_getenv(name);
    if (text == NULL || strcmp(text, "0") == 0) {
        return false;
    }
    if (strcmp(text, "1") != 0) {
        say("%s=%s is ignored: it is 0 or 1", name, text);
        return false;
    }
    return true;
}

static void read_take(void) {
    const char* text = secure_getenv("HCAMEM_PRELOAD_TAKE");
    if (text == NULL || strcmp(text, "all") == 0) {
        return;
    }
    if (strcmp(text, "none") == 0) {
        settings.take = false;
    } else {
        say("HCAMEM_PRELOAD_TAKE=%s is ignored: it is all or none", text);
    }
}

static void keep_standard_error(void) {
    struct stat file;
    if (fstat(STDERR_FILENO, &file) == 0) {
        /* Far from the numbers that programs expect to get, or close. */
        kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 200);
        kept_device = file.st_dev;
        kept_inode = file.st_ino;
    }
}

int report_descriptor(void) {
    struct stat file;
    const bool same = kept >= 0 && fstat(kept, &file) == 0 && file.st_dev == kept_device &&
                      file.st_ino == kept_inode;
    return same ? kept : STDERR_FILENO;
}

/* The first of all constructors here: the others look at these. */
__attribute__((constructor(101))) static void read_settings(void) {
    const char* report = secure_getenv("HCAMEM_PRELOAD_REPORT");
    read_take();
    settings.strict = flag("HCAMEM_PRELOAD_STRICT");
    settings.report = report != NULL && *report != '\0' && strcmp(report, "0") != 0;
    if (settings.report && strcmp(report, "1") != 0) {
        settings.report_path = strdup(report);
    } else if (settings.report) {
        keep_standard_error();
    }
}
