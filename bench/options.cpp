// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "options.hpp"

#include <cstdio>
#include <cstdlib>

#include <getopt.h>

namespace bench {
namespace {

constexpr const char* usage =
    "usage: bench_pool [OPTION...]\n"
    "Measures hcamem's allocators and others, side by side, and writes pool.json and pool.md.\n"
    "\n"
    "  -d, --directory DIR    where to write (.)\n"
    "  -s, --source SOURCE    hcamem's memory: memory or device (HCAMEM_SOURCE, else memory)\n"
    "  -f, --filter REGEX     only what matches, of PATTERN/BYTES/THREADS/IMPLEMENTATION or "
    "memory\n"
    "  -r, --repetitions N    of which the median is taken, at least 1 (12)\n"
    "  -t, --seconds SECONDS  of each repetition, about (0.06)\n"
    "  -q, --quick            3 repetitions of 0.01 s: shows that all works, not how fast\n"
    "  -l, --list             only list what would be measured\n"
    "  -h, --help\n";

[[noreturn]] void refuse(const char* why) {
    std::fprintf(stderr, "bench_pool: %s\n%s", why, usage);
    std::exit(2);
}

double positive_number(const char* text) {
    char* end = nullptr;
    const double number = std::strtod(text, &end);
    if (end == text || *end != '\0' || !(number > 0)) {
        refuse("a number above 0 is needed");
    }
    return number;
}

} // namespace

options parse_options(int count, char** arguments) {
    static const option known[] = {{"directory", required_argument, nullptr, 'd'},
                                   {"source", required_argument, nullptr, 's'},
                                   {"filter", required_argument, nullptr, 'f'},
                                   {"repetitions", required_argument, nullptr, 'r'},
                                   {"seconds", required_argument, nullptr, 't'},
                                   {"quick", no_argument, nullptr, 'q'},
                                   {"list", no_argument, nullptr, 'l'},
                                   {"help", no_argument, nullptr, 'h'},
                                   {}};
    options chosen;
    const char* source = std::getenv("HCAMEM_SOURCE");
    chosen.source = source != nullptr ? source : "memory";
    int letter = 0;
    while ((letter = getopt_long(count, arguments, "d:s:f:r:t:qlh", known, nullptr)) != -1) {
        switch (letter) {
        case 'd':
            chosen.directory = optarg;
            break;
        case 's':
            chosen.source = optarg;
            break;
        case 'f':
            try {
                chosen.filter = optarg;
            } catch (const std::regex_error& error) {
                refuse(error.what());
            }
            break;
        case 'r':
            chosen.repetitions = static_cast<int>(positive_number(optarg));
            break;
        case 't':
            chosen.seconds = positive_number(optarg);
            break;
        case 'q':
            chosen.quick = true;
            chosen.repetitions = 3;
            chosen.seconds = 0.01;
            break;
        case 'l':
            chosen.list = true;
            break;
        case 'h':
            std::fputs(usage, stdout);
            std::exit(0);
        default:
            refuse("unknown option");
        }
    }
    if (optind != count || chosen.repetitions < 1) {
        refuse("these arguments are not understood");
    }
    if (chosen.source != "memory" && chosen.source != "device") {
        refuse("the source is memory or device");
    }
    return chosen;
}

} // namespace bench
