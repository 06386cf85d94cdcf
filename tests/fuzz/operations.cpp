// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "operations.hpp"

#include <array>

namespace fuzz {

namespace {

constexpr std::array table{
    Operation{"open", 6, open_node},
    Operation{"close", 4, close_node},
    Operation{"dup", 3, duplicate_node},
    Operation{"info", 4, ask_info},
    Operation{"event", 2, await_event},
    Operation{"seek", 1, seek_node},
    Operation{"garbage", 6, send_garbage},
    Operation{"fdinfo", 1, read_fdinfo},

    Operation{"create", 10, create_region},
    Operation{"create badly", 4, create_badly},
    Operation{"mmap", 12, map_region},
    Operation{"bare mmap", 8, map_bare},
    Operation{"mmap badly", 4, map_badly},

    Operation{"write", 20, write_pages},
    Operation{"verify", 16, verify_pages},
    Operation{"own memory", 4, access_own_memory},
    Operation{"kernel copy", 4, copy_by_kernel},

    Operation{"munmap", 8, unmap_range},
    Operation{"mprotect", 8, protect_range},
    Operation{"madvise", 12, advise_range},
    Operation{"mlock", 3, lock_range},
    Operation{"mlockall", 1, lock_everything},
    Operation{"mremap", 6, move_range},
    Operation{"resize", 4, resize_range},
    Operation{"mremap badly", 2, move_badly},

    Operation{"export", 8, export_range},
    Operation{"export badly", 3, export_badly},
    Operation{"dma-buf mmap", 8, map_export},
    Operation{"dma-buf close", 4, close_export},
    Operation{"dma-buf calls", 3, call_dma_buf},

    Operation{"fork", 3, fork_and_wait},
    Operation{"fork beside", 2, fork_beside},
    Operation{"fork and kill", 2, fork_and_kill},
    Operation{"fork with less", 1, fork_with_less},
    Operation{"namespace", 1, fork_into_namespace},
    Operation{"exec", 1, execute},
    Operation{"reap", 3, reap_child},

    Operation{"vmsplice", 3, splice_pages},
    Operation{"drain", 3, drain_pipe},
    // The io_uring of 6.1 takes no mapping of a file that is not shmem's.
    Operation{"pin", 1, pin_pages, false},
    Operation{"unpin", 2, unpin_pages, false},
    Operation{"send", 3, send_descriptor},
    Operation{"receive", 4, receive_descriptor},

    Operation{"race", 2, race_reader},
};
static_assert(table.size() <= most_operations);

constexpr unsigned total_weight() {
    unsigned total = 0;
    for (const Operation& operation : table) {
        total += operation.weight;
    }
    return total;
}

} // namespace

std::span<const Operation> operations() {
    return table;
}

std::size_t draw_operation(Random& random) {
    std::uint64_t drawn = random.below(total_weight());
    std::size_t number = 0;
    while (drawn >= table[number].weight) {
        drawn -= table[number].weight;
        ++number;
    }
    return number;
}

} // namespace fuzz
