// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What a fuzzing process does, one operation per step.
#ifndef TESTS_FUZZ_OPERATIONS_HPP
#define TESTS_FUZZ_OPERATIONS_HPP

#include <span>

#include "process.hpp"
#include "random.hpp"

namespace fuzz {

struct Operation {
    const char* name;
    unsigned weight; ///< how often, relative to the others
    Outcome (*run)(Process& process, Random& random);
    bool everywhere = true; ///< false if some kernel never does it
};

/// All of them; the position is the number of the tally in the report.
std::span<const Operation> operations();

/// The position of one that is drawn by weight.
std::size_t draw_operation(Random& random);

// node_operations.cpp: open files and their ioctls
Outcome open_node(Process& process, Random& random);
Outcome close_node(Process& process, Random& random);
Outcome duplicate_node(Process& process, Random& random);
Outcome ask_info(Process& process, Random& random);
Outcome await_event(Process& process, Random& random);
Outcome seek_node(Process& process, Random& random);
Outcome send_garbage(Process& process, Random& random);
Outcome read_fdinfo(Process& process, Random& random);

// region_operations.cpp: obtaining and mapping regions
Outcome create_region(Process& process, Random& random);
Outcome create_badly(Process& process, Random& random);
Outcome map_region(Process& process, Random& random);
Outcome map_bare(Process& process, Random& random);
Outcome map_badly(Process& process, Random& random);

// content_operations.cpp: what the pages hold
Outcome write_pages(Process& process, Random& random);
Outcome verify_pages(Process& process, Random& random);
Outcome access_own_memory(Process& process, Random& random);
Outcome copy_by_kernel(Process& process, Random& random);

// range_operations.cpp: changing mappings
Outcome unmap_range(Process& process, Random& random);
Outcome protect_range(Process& process, Random& random);
Outcome advise_range(Process& process, Random& random);
Outcome lock_range(Process& process, Random& random);
Outcome lock_everything(Process& process, Random& random);

// move_operations.cpp: mremap()
Outcome move_range(Process& process, Random& random);
Outcome resize_range(Process& process, Random& random);
Outcome move_badly(Process& process, Random& random);

// dma_buf_operations.cpp
Outcome export_range(Process& process, Random& random);
Outcome export_badly(Process& process, Random& random);
Outcome map_export(Process& process, Random& random);
Outcome close_export(Process& process, Random& random);
Outcome call_dma_buf(Process& process, Random& random);

// family_operations.cpp: children
Outcome fork_and_wait(Process& process, Random& random);
Outcome fork_beside(Process& process, Random& random);
Outcome fork_and_kill(Process& process, Random& random);
Outcome fork_with_less(Process& process, Random& random);
Outcome fork_into_namespace(Process& process, Random& random);
Outcome execute(Process& process, Random& random);
Outcome reap_child(Process& process, Random& random);

// reference_operations.cpp: who else holds pages and descriptors
Outcome splice_pages(Process& process, Random& random);
Outcome drain_pipe(Process& process, Random& random);
Outcome pin_pages(Process& process, Random& random);
Outcome unpin_pages(Process& process, Random& random);
Outcome send_descriptor(Process& process, Random& random);
Outcome receive_descriptor(Process& process, Random& random);

// race_operations.cpp: two threads
Outcome race_reader(Process& process, Random& random);

/// What a program started by execute() does with the descriptor of a node that it inherited.
[[noreturn]] void run_inherited(int node);

} // namespace fuzz

#endif
