// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_SHARED_THREAD_NUMBER_H
#define HCAMEM_SHARED_THREAD_NUMBER_H

#include <cstdint>

namespace hcamem::core {

/// The calling thread's number, never 0 and never used again in this process, unlike
/// pthread_self(): a new thread must not be taken for one that died with a lock. The
/// only thread of a forked child has the number of the thread that forked.
std::uint64_t thread_number() noexcept;

} // namespace hcamem::core

#endif
