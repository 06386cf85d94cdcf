// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The shared heaps that this process has. What lies in a heap's memory finds the heap by
// an address there: it cannot hold a pointer to it, which is another in each process.
#ifndef HCAMEM_SHARED_REGISTRY_H
#define HCAMEM_SHARED_REGISTRY_H

#include <mutex>

#include "shared/control.h"

namespace hcamem::core {

class shared_heap;

/// Held while heaps come and go.
std::unique_lock<std::mutex> lock_registry();

/// -EMFILE with a message: there are too many.
int register_heap(shared_heap& made) noexcept;
void unregister_heap(const shared_heap& ended) noexcept;

/// Whether the process has the heap with this control segment.
bool is_registered(const file_identity& control) noexcept;

/// The heap whose memory holds the address; takes no lock. nullptr: there is none.
shared_heap* find_heap(const void* address) noexcept;

} // namespace hcamem::core

#endif
