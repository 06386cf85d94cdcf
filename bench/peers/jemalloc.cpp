// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "contender.hpp"
#include "patterns/contenders.hpp"
#include "peers/malloc_library.hpp"

namespace bench {
namespace {

// Debian's has no prefix. Its thread-local data needs room that support/room_for_tls.hpp makes.
malloc_functions load() {
    return load_malloc({"libjemalloc.so.2", "libjemalloc2", "malloc", "free"});
}

const registered jemalloc("jemalloc", side::peer, sized_contender<malloc_impl<load>>::make);

} // namespace
} // namespace bench
