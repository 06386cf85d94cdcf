// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Whether the C library knows about this process. Its mutexes hold the number of the
// thread that locked them, which it keeps up to date in fork(), as it does the list of
// robust mutexes that the kernel looks at when a thread dies. In a child of a raw clone()
// both are the parent's: a robust mutex must not be touched there.
#ifndef HCAMEM_OS_FORK_HOOK_H
#define HCAMEM_OS_FORK_HOOK_H

#include <sys/types.h>

namespace hcamem::core {

/// This process's ID, without a system call; in a child of a raw clone() the parent's.
pid_t libc_pid() noexcept;

/// False in a child of a raw clone(), and its children by raw clone().
bool made_by_libc() noexcept;

} // namespace hcamem::core

#endif
