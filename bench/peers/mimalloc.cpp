// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "contender.hpp"
#include "patterns/contenders.hpp"
#include "peers/malloc_library.hpp"

namespace bench {
namespace {

malloc_functions load() {
    return load_malloc({"libmimalloc.so.2", "libmimalloc2.0", "mi_malloc", "mi_free"});
}

const registered mimalloc("mimalloc", side::peer, sized_contender<malloc_impl<load>>::make);

} // namespace
} // namespace bench
