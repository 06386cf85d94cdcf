/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two ranks send each other messages of sizes from one byte to past the eager limits, and
 * compare every byte. Rank 0 prints one line: "bytes=N errors=N usec=N", usec per one-way
 * message of 4 KiB. With the argument "forever" it goes on until it is killed.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 1 << 18, rounds = 2, timed_size = 4096, timed_rounds = 20 };

static unsigned char pattern(size_t at, int seed) {
    return (unsigned char)((at * 131 + (size_t)seed * 29 + at / 251) & 0xff);
}

static void fill(unsigned char* bytes, size_t size, int seed) {
    for (size_t i = 0; i < size; ++i) {
        bytes[i] = pattern(i, seed);
    }
}

static unsigned long differences(const unsigned char* bytes, size_t size, int seed) {
    unsigned long found = 0;
    for (size_t i = 0; i < size; ++i) {
        found += bytes[i] != pattern(i, seed);
    }
    return found;
}

/* Everything is there and back once; the answer has another pattern. */
static unsigned long exchange(unsigned char* bytes, int size, int rank, int seed) {
    unsigned long errors = 0;
    if (rank == 0) {
        fill(bytes, (size_t)size, seed);
        MPI_Send(bytes, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(bytes, size, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        errors = differences(bytes, (size_t)size, seed + 1);
    } else {
        MPI_Recv(bytes, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        errors = differences(bytes, (size_t)size, seed);
        fill(bytes, (size_t)size, seed + 1);
        MPI_Send(bytes, size, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
    return errors;
}

static double time_of(unsigned char* bytes, int rank) {
    double begin = 0;
    for (int i = 0; i < timed_rounds + 2; ++i) {
        if (i == 2) {
            begin = MPI_Wtime();
        }
        if (rank == 0) {
            MPI_Send(bytes, timed_size, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
            MPI_Recv(bytes, timed_size, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(bytes, timed_size, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(bytes, timed_size, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - begin) * 1e6 / (2 * timed_rounds);
}

int main(int argc, char** argv) {
    static const int sizes[] = {1, 63, 64, 1000, 4096, 8191, 16384, 70000, most};
    int rank = 0;
    int ranks = 0;
    unsigned long errors = 0;
    unsigned long all_errors = 0;
    unsigned long bytes = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    unsigned char* const buffer = malloc(most);
    if (ranks != 2 || buffer == NULL) {
        fprintf(stderr, "mpi_pingpong: 2 ranks are needed, and 256 KiB\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        for (int round = 0; round < rounds; ++round) {
            errors += exchange(buffer, sizes[i], rank, round);
            bytes += 2UL * (unsigned long)sizes[i];
        }
    }
    if (argc == 2 && strcmp(argv[1], "forever") == 0) {
        if (rank == 0) {
            puts("going on");
            fflush(stdout);
        }
        for (;;) {
            errors += exchange(buffer, sizes[4], rank, 0);
        }
    }
    MPI_Reduce(&errors, &all_errors, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    const double usec = time_of(buffer, rank);
    if (rank == 0) {
        printf("bytes=%lu errors=%lu usec=%.1f\n", bytes, all_errors, usec);
    }
    free(buffer);
    MPI_Finalize();
    return all_errors == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
