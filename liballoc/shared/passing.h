// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A shared heap's two descriptors as one message on a UNIX socket: unix(7), SCM_RIGHTS.
#ifndef HCAMEM_SHARED_PASSING_H
#define HCAMEM_SHARED_PASSING_H

#include "os/file.h"

namespace hcamem::core {

struct heap_files {
    file control;
    file memory;
};

/// 0, or -errno with a message.
int send_files(int socket, int control, int memory) noexcept;

/// Also -EBADMSG with a message: what arrived was something else.
int receive_files(int socket, heap_files& received) noexcept;

} // namespace hcamem::core

#endif
