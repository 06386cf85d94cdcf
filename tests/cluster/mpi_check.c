/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * MPI_Alltoall and MPI_Allreduce with every byte and sum checked.
 *
 *   mpi_check ROUNDS    0: until it is killed
 *
 * Rank 0 prints "begun" after the first round, and at the end how many ranks on how many
 * machines there were. A wrong value ends the job with status 1.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Eager with both libraries, and rendezvous. */
static const int sizes[] = {1, 64, 4000, 100000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), LONGEST = 100000, MOST_RANKS = 64 };

static void give_up(const char* what) {
    fprintf(stderr, "mpi_check: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static unsigned char byte_of(int from, int to, unsigned round, int offset) {
    return (unsigned char)((unsigned)from * 89 + (unsigned)to * 31 + round * 7 +
                           (unsigned)offset * 13 + (unsigned)offset / 251);
}

static void check_alltoall(int rank, int ranks, unsigned round, int bytes, unsigned char* out,
                           unsigned char* in) {
    for (int to = 0; to < ranks; ++to) {
        for (int i = 0; i < bytes; ++i) {
            out[to * bytes + i] = byte_of(rank, to, round, i);
        }
    }
    memset(in, 0xa5, (size_t)ranks * (size_t)bytes);
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; ++from) {
        for (int i = 0; i < bytes; ++i) {
            if (in[from * bytes + i] != byte_of(from, rank, round, i)) {
                give_up("MPI_Alltoall brought a wrong byte");
            }
        }
    }
}

static void check_allreduce(int rank, int ranks, unsigned round) {
    enum { COUNT = 1000 };
    static long mine[COUNT];
    static long sum[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        mine[i] = (long)(rank + 1) * (i + (long)round);
    }
    MPI_Allreduce(mine, sum, COUNT, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; ++i) {
        if (sum[i] != (long)ranks * (ranks + 1) / 2 * (i + (long)round)) {
            give_up("MPI_Allreduce brought a wrong sum");
        }
    }
}

/* How many different machines the ranks run on. */
static int count_machines(int ranks) {
    static char names[MOST_RANKS][MPI_MAX_PROCESSOR_NAME];
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    int machines = 0;
    MPI_Get_processor_name(name, &length);
    MPI_Allgather(name, sizeof(name), MPI_CHAR, names, sizeof(name), MPI_CHAR, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; ++i) {
        int first = 0;
        while (strcmp(names[first], names[i]) != 0) {
            ++first;
        }
        machines += first == i;
    }
    return machines;
}

int main(int argc, char** argv) {
    int rank = 0;
    int ranks = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2 || ranks > MOST_RANKS) {
        give_up("usage: mpi_check ROUNDS, with at most 64 ranks");
    }
    const unsigned rounds = (unsigned)strtoul(argv[1], NULL, 10);
    unsigned char* out = malloc((size_t)ranks * LONGEST);
    unsigned char* in = malloc((size_t)ranks * LONGEST);
    if (out == NULL || in == NULL) {
        give_up("no memory");
    }
    const int machines = count_machines(ranks);
    for (unsigned round = 0; rounds == 0 || round < rounds; ++round) {
        for (int i = 0; i < SIZES; ++i) {
            check_alltoall(rank, ranks, round, sizes[i], out, in);
        }
        check_allreduce(rank, ranks, round);
        if (rank == 0 && round == 0) {
            printf("begun\n");
            fflush(stdout);
        }
    }
    if (rank == 0) {
        printf("mpi_check: %d ranks on %d machines, %u rounds, all right\n", ranks, machines,
               rounds);
    }
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
