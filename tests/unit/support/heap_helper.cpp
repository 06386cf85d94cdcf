// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The other program of SharedHeapJoin.another_program_works_with_it_at_another_address.
#include <cstdio>
#include <cstring>
#include <exception>

#include <sys/mman.h>

#include "support/heaps.hpp"

namespace unit {
namespace {

using hcamem::shared_heap;

int work_with(shared_heap& heap) {
    shared_vector* const numbers = heap.find<shared_vector>("numbers");
    shared_map* const texts = heap.find<shared_map>("texts");
    if (numbers == nullptr || texts == nullptr) {
        return 2;
    }
    if (numbers->size() != 1000 || numbers->back() != 999) {
        return 3;
    }
    if (texts->at(7) != "seven") {
        return 4;
    }
    {
        const auto guard = heap.lock();
        numbers->resize(5000, 1);
        texts->emplace(8, shared_string(500, '8', heap.get_allocator<char>()));
        texts->at(7) = "another seven, which is too long to lie in the string itself";
    }
    heap.construct<int>("from the helper", 42);
    for (int count = 0; count < 2000; ++count) {
        const auto guard = heap.lock();
        ++*heap.find<int>("counter");
    }
    return 0;
}

int help(int socket) {
    // Something else at the address that the heap has in the other process.
    void* const theirs = reinterpret_cast<void*>(hear(socket));
    mmap(theirs, 4 * MiB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    shared_heap heap = shared_heap::receive(socket);
    if (hcamem_shared_address(heap.c_handle()) == theirs) {
        return 1;
    }
    const int result = work_with(heap);
    tell(socket, 1);
    if (result != 0 || hear(socket) != 2) {
        return result;
    }
    return *heap.find<int>("after") == 6 ? 0 : 5; // its maker has closed it
}

} // namespace

int be_helper(int socket) {
    try {
        return help(socket);
    } catch (const std::exception& caught) {
        std::fprintf(stderr, "in the helper: %s\n", caught.what());
        return 126;
    }
}

} // namespace unit
