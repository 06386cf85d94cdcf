// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Memory for several processes, by a descriptor. Its size is sealed: otherwise whoever
// has the descriptor could cut it short, and the others would die of SIGBUS.
#ifndef HCAMEM_OS_SEALED_MEMORY_H
#define HCAMEM_OS_SEALED_MEMORY_H

#include <cstddef>

#include "os/file.h"

namespace hcamem::core {

/// A memfd of `bytes` zeros. The name is what /proc/PID/maps shows. 0, or -errno with a message.
int make_sealed_memory(const char* name, std::size_t bytes, file& made) noexcept;

/// Whether the descriptor is such memory, of this size for ever.
bool is_sealed_memory(int descriptor, std::size_t bytes) noexcept;

} // namespace hcamem::core

#endif
