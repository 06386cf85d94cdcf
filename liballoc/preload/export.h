/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef HCAMEM_PRELOAD_EXPORT_H
#define HCAMEM_PRELOAD_EXPORT_H

/* A function that stands in front of one of the same name; all others are hidden. */
#define HOOK __attribute__((visibility("default")))

#endif
