/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* MPI_Alloc_mem() with the info hint, without it, and a message from one block to another. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { bytes = 1 << 20 };

int main(int argc, char** argv) {
    char* hinted = NULL;
    char* plain = NULL;
    int rank = 0;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpool_hints", "hcamem");
    MPI_Alloc_mem(bytes, info, &hinted);
    MPI_Alloc_mem(bytes, MPI_INFO_NULL, &plain);
    MPI_Info_free(&info);
    memset(hinted, 'a' + rank, bytes);
    memset(plain, 0, bytes);
    const int other = 1 - rank;
    MPI_Sendrecv(hinted, bytes, MPI_BYTE, other, 1, plain, bytes, MPI_BYTE, other, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    unsigned long errors = 0;
    for (int i = 0; i < bytes; ++i) {
        errors += plain[i] != 'a' + other;
    }
    printf("rank=%d errors=%lu\n", rank, errors);
    MPI_Free_mem(hinted);
    MPI_Free_mem(plain);
    MPI_Finalize();
    return errors == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
