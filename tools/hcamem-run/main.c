/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * hcamem-run: starts a program with libhcamem-preload.so or libhcamem-malloc.so. A launcher of its
 * own, because LD_PRELOAD in front of mpirun would reach mpirun, and its ranks only by chance.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef HCAMEM_LIBDIR
#error "HCAMEM_LIBDIR is where the library is installed"
#endif

enum { usage_error = 2, cannot_run = 126, not_found = 127 };

static const char help[] =
    "usage: hcamem-run [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
    "\n"
    "Runs PROGRAM with the eager buffers of UCX and libfabric in memory of hcamem, registered\n"
    "without page pinning. With MPI: mpirun -np 2 hcamem-run ./app\n"
    "\n"
    "  -r, --report[=FILE]  when each process ends, say what was taken on standard error,\n"
    "                       or add a line of JSON to FILE\n"
    "  -s, --strict         memory that cannot be had is an error, not a reason for other memory\n"
    "  -n, --none           take nothing, only report\n"
    "  -m, --malloc[=SIZE]  also blocks of SIZE bytes or more (64K) that PROGRAM allocates "
    "itself,\n"
    "                       for programs that use neither UCX nor libfabric; not for scripts\n"
    "      --hca=NAME       memory of this HCA's node (HCAMEM_HCA)\n"
    "  -h, --help           this text\n"
    "\n"
    "Exit status: PROGRAM's; 2 wrong usage; 126 the program cannot be run; 127 not found.\n";

__attribute__((noreturn, format(printf, 2, 3))) static void fail(int status, const char* format,
                                                                 ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("hcamem-run: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(status);
}

static void set(const char* name, const char* value) {
    if (setenv(name, value, 1) != 0) {
        fail(cannot_run, "%s cannot be set: %s", name, strerror(errno));
    }
}

/* A folder may be named from elsewhere when the program changes its own. */
static const char* absolute(const char* path) {
    if (path[0] == '/' || strcmp(path, "1") == 0) {
        return path;
    }
    char* const here = getcwd(NULL, 0);
    char* full = NULL;
    if (here == NULL || asprintf(&full, "%s/%s", here, path) < 0) {
        fail(cannot_run, "the current folder is not known: %s", strerror(errno));
    }
    free(here);
    return full;
}

/* Beside this program as it was built or moved, else where it was installed. */
static const char* find_library(const char* name) {
    static char path[4200];
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length > 0) {
        self[length] = '\0';
        snprintf(path, sizeof path, "%s/../lib/%s", dirname(self), name);
        if (access(path, R_OK) == 0) {
            return path;
        }
    }
    snprintf(path, sizeof path, "%s/%s", HCAMEM_LIBDIR, name);
    if (access(path, R_OK) != 0) {
        fail(cannot_run, "%s is neither in ../lib beside this program nor in %s", name,
             HCAMEM_LIBDIR);
    }
    return path;
}

/* In front of what is preloaded already. */
static void preload(const char* library) {
    const char* others = getenv("LD_PRELOAD");
    char* all = NULL;
    if (strpbrk(library, " :") != NULL) {
        fail(cannot_run, "%s: the loader takes no path with a space or colon", library);
    }
    if (others == NULL || *others == '\0') {
        set("LD_PRELOAD", library);
        return;
    }
    if (asprintf(&all, "%s:%s", library, others) < 0) {
        fail(cannot_run, "no memory");
    }
    set("LD_PRELOAD", all);
    free(all);
}

int main(int argc, char** argv) {
    enum { hca = 256 };
    static const struct option options[] = {
        {"report", optional_argument, NULL, 'r'},
        {"strict", no_argument, NULL, 's'},
        {"none", no_argument, NULL, 'n'},
        {"malloc", optional_argument, NULL, 'm'},
        {"hca", required_argument, NULL, hca},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char* library = "libhcamem-preload.so";
    for (int option; (option = getopt_long(argc, argv, "+r::snm::h", options, NULL)) != -1;) {
        switch (option) {
        case 'r':
            set("HCAMEM_PRELOAD_REPORT", optarg != NULL ? absolute(optarg) : "1");
            break;
        case 's':
            set("HCAMEM_PRELOAD_STRICT", "1");
            break;
        case 'n':
            set("HCAMEM_PRELOAD_TAKE", "none");
            break;
        case 'm':
            library = "libhcamem-malloc.so";
            if (optarg != NULL) {
                set("HCAMEM_MALLOC_THRESHOLD", optarg);
            }
            break;
        case hca:
            set("HCAMEM_HCA", optarg);
            break;
        case 'h':
            fputs(help, stdout);
            return EXIT_SUCCESS;
        default:
            fputs("see hcamem-run --help\n", stderr);
            return usage_error;
        }
    }
    if (optind == argc) {
        fail(usage_error, "no program given; see hcamem-run --help");
    }
    preload(find_library(library));
    execvp(argv[optind], argv + optind);
    fail(errno == ENOENT ? not_found : cannot_run, "%s: %s", argv[optind], strerror(errno));
}
