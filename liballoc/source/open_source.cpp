// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <atomic>

#include "error/message.h"
#include "source/source.h"

namespace hcamem::core {

int open_source(const hcamem_options& options, std::unique_ptr<source>& opened) {
    if (options.source == HCAMEM_MEMORY) {
        return open_memory_source(options, opened);
    }
    const int result = open_device_source(options, opened);
    if (result == 0 || options.source == HCAMEM_DEVICE) {
        return result;
    }
    static std::atomic<bool> said;
    warn_once(said, "ordinary memory is used: %s", last_message());
    return open_memory_source(options, opened);
}

} // namespace hcamem::core
