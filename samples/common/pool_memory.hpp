// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Message buffers out of an hcamem pool: the part of the samples that shows the library.
#ifndef SAMPLES_COMMON_POOL_MEMORY_HPP
#define SAMPLES_COMMON_POOL_MEMORY_HPP

#include "exit_codes.hpp"
#include "message_memory.hpp"

#include <exception>
#include <hcamem/pool.hpp>
#include <string>

namespace samples {

/// A pool on the node of this HCA; never ordinary memory, so that a sample that says "pool" used
/// the device. The environment (HCAMEM_*) chooses everything else.
/// Throws failure(memory): no module, no node, not permitted, over a limit.
[[nodiscard]] hcamem::pool open_pool(const hca& device);

/// call(), with every exception of the library turned into this program's failure(memory).
template <typename Call>
auto translated_pool_call(Call call) {
    try {
        return call();
    } catch (const failure&) {
        throw;
    } catch (const std::exception& reason) {
        throw failure(exit_code::memory, std::string("pool: ") + reason.what());
    }
}

/// "dma_buf", "user_pages" or "none" for HCAMEM_PATH_*.
[[nodiscard]] const char* registration_name(std::uint32_t path);

[[nodiscard]] std::unique_ptr<message_memory> open_pool_memory(const hca& device, int access);

/// Where hcamem nodes are mapped in this process, from /proc/self/maps.
[[nodiscard]] std::vector<address_range> mapped_nodes();

} // namespace samples

#endif
