/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the user set in the environment, and lines for the user.
 *
 *   HCAMEM_PRELOAD_TAKE    all | none   none: take nothing, only report what would be taken
 *   HCAMEM_PRELOAD_STRICT  0 | 1        1: memory that cannot be had is an error
 *   HCAMEM_PRELOAD_REPORT  0 | 1 | FILE 1: a report on standard error when the process ends;
 *                                       a path: one line of JSON more in that file
 *
 * Read when the library is loaded, since programs change their environment later. Ignored in
 * set-user-ID and other AT_SECURE programs.
 */
#ifndef HCAMEM_PRELOAD_SETTINGS_H
#define HCAMEM_PRELOAD_SETTINGS_H

#include <stdbool.h>

struct settings {
    bool take;
    bool strict;
    bool report;
    const char* report_path; /* NULL: standard error */
};

extern struct settings settings;

/* Standard error as it was when the library was loaded, since many programs close it before they
 * end; as it is now if that is gone. */
int report_descriptor(void);

/* A line on standard error, in one write(). */
__attribute__((format(printf, 1, 2))) void say(const char* format, ...);

#endif
