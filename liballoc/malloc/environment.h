/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef HCAMEM_MALLOC_ENVIRONMENT_H
#define HCAMEM_MALLOC_ENVIRONMENT_H

/* Takes this library out of LD_PRELOAD, for the programs that this process starts; what else is
 * preloaded stays. */
void leave_environment(void);

#endif
