// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "contender.hpp"
#include "patterns/contenders.hpp"
#include "peers/malloc_library.hpp"

namespace bench {
namespace {

malloc_functions load() {
    return load_malloc(
        {"libtcmalloc_minimal.so.4", "libtcmalloc-minimal4", "tc_malloc", "tc_free"});
}

const registered tcmalloc("tcmalloc", side::peer, sized_contender<malloc_impl<load>>::make);

} // namespace
} // namespace bench
