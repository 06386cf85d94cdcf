// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A full memory fence in every running thread of the process: membarrier(2).
#ifndef HCAMEM_OS_MEMBARRIER_H
#define HCAMEM_OS_MEMBARRIER_H

namespace hcamem::core {

/// Announces the process's intent, which the fence needs; may be repeated. False: the
/// kernel (before 4.14) or a seccomp filter does not have it.
bool register_membarrier() noexcept;

/// The fence. Only after register_membarrier() succeeded in this process.
void membarrier() noexcept;

} // namespace hcamem::core

#endif
