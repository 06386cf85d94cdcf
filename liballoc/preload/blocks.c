/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "blocks.h"

#include "report.h"

atomic_uintptr_t blocks_begin = UINTPTR_MAX;
atomic_uintptr_t blocks_end;

static void widen(const void* block, size_t bytes) {
    const uintptr_t begin = (uintptr_t)block;
    uintptr_t known = atomic_load(&blocks_begin);
    while (begin < known && !atomic_compare_exchange_weak(&blocks_begin, &known, begin)) {
    }
    known = atomic_load(&blocks_end);
    while (begin + bytes > known &&
           !atomic_compare_exchange_weak(&blocks_end, &known, begin + bytes)) {
    }
}

enum { kept_idle = 64 << 20, large_block = 1 << 20 }; /* bytes */

enum outcome take_block(struct block_user* user, size_t bytes, size_t align, void** block) {
    if (in_child()) {
        return untouched;
    }
    const enum outcome result = obtain(user->owner, user->name, bytes, align, block);
    if (result != done) {
        return result;
    }
    widen(*block, bytes);
    user->number = report_piece(user->owner, user->name, true, *block, block_bytes(*block));
    return done;
}

void give_back_block(struct block_user* user, void* block) {
    if (in_child()) {
        return;
    }
    hcamem_pool* const from = current_pool();
    const size_t bytes = library.usable(from, block);
    report_given_back(user->number, bytes);
    library.free(from, block);
    if (bytes >= large_block) {
        library.trim(from, kept_idle);
    }
}

size_t block_bytes(const void* block) {
    return in_child() ? 0 : library.usable(current_pool(), block);
}
