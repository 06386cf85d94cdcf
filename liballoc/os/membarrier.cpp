// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "os/membarrier.h"

#include <cerrno>
#include <cstdlib>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "error/message.h"

namespace hcamem::core {

bool register_membarrier() noexcept {
    const int error = errno;
    const bool done = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    errno = error;
    return done;
}

void membarrier() noexcept {
    // A filter that came later may forbid it. Going on would hand one block out twice.
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
        fatal("the kernel refuses membarrier(), which it granted before");
    }
}

} // namespace hcamem::core
