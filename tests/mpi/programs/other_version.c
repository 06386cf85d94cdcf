/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Preloaded: Open MPI as if it were another. */
#include <string.h>

int MPI_Get_library_version(char* version, int* length);

int MPI_Get_library_version(char* version, int* length) {
    strcpy(version, "Open MPI v5.0.3, package: none");
    *length = (int)strlen(version);
    return 0;
}
