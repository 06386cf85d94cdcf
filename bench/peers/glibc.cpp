// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <cstdlib>

#include <malloc.h>

#include "contender.hpp"
#include "patterns/contenders.hpp"
#include "peers/malloc_library.hpp"
#include "support/indirect.hpp"

namespace bench {
namespace {

// Without giving memory back to the kernel, which none of the others does in these patterns.
malloc_functions load() {
    constexpr int gigabyte = 1 << 30;
    constexpr int largest_mmap_threshold = 32 << 20;
    mallopt(M_TRIM_THRESHOLD, gigabyte);
    mallopt(M_MMAP_THRESHOLD, largest_mmap_threshold);
    return {indirect(&std::malloc), indirect(&std::free)};
}

const registered glibc("glibc malloc", side::peer, sized_contender<malloc_impl<load>>::make);

} // namespace
} // namespace bench
