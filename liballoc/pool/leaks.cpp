// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What is live when a pool is closed.
#include <cinttypes>

#include "error/message.h"
#include "pool/pool.h"

namespace hcamem::core {

void pool::report_leaks(std::uint64_t live) noexcept {
    if (!reports_leaks()) {
        return;
    }
    print_line("pool %p is closed while %" PRIu64 " blocks are live:",
               static_cast<const void*>(this), live);
    for (std::size_t index = 0; index < class_count; ++index) {
        const std::uint64_t blocks = arenas_.live(index);
        if (blocks != 0) {
            const std::uint64_t bytes = size_classes[index].bytes;
            print_line("  %" PRIu64 " x %s", blocks, size_text(bytes).c_str());
        }
    }
    const page_heap::usage large = pages_.large_usage();
    if (large.blocks != 0) {
        print_line("  %" PRIu64 " larger ones, together %s", large.blocks,
                   size_text(large.bytes).c_str());
    }
    if (checks_.log() != nullptr) {
        checks_.log()->print(range_.data(), range_.data() + range_.size());
    }
}

} // namespace hcamem::core
