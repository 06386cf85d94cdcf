// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Registered message buffers out of three kinds of memory, so that they can be compared: an hcamem
// pool, the heap, and huge pages.
#ifndef SAMPLES_COMMON_MESSAGE_MEMORY_HPP
#define SAMPLES_COMMON_MESSAGE_MEMORY_HPP

#include "hca.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace samples {

enum class memory_kind {
    pool,    // from the HCA's hcamem node, registered as the library finds best
    malloc,  // from the heap, registered by ibv_reg_mr()
    hugetlb, // huge pages of the kernel's reserve, registered by ibv_reg_mr()
};

[[nodiscard]] const char* name_of(memory_kind kind);
/// Throws failure(usage) for any other word.
[[nodiscard]] memory_kind parse_memory_kind(std::string_view option, std::string_view text);

/// A buffer that belongs to the message_memory it came from.
struct message_buffer {
    std::span<std::byte> bytes;
    std::uint32_t lkey = 0;
    std::uint32_t rkey = 0;

    /// The part [offset, offset + length).
    [[nodiscard]] ibv_sge sge(std::size_t offset, std::size_t length) const;
    [[nodiscard]] ibv_sge sge() const { return sge(0, bytes.size()); }
};

/// Addresses [begin, end).
struct address_range {
    std::uint64_t begin;
    std::uint64_t end;
};

class message_memory {
  public:
    virtual ~message_memory() = default;
    message_memory(const message_memory&) = delete;
    message_memory& operator=(const message_memory&) = delete;

    /// Throws failure(memory) that names the limit.
    [[nodiscard]] virtual message_buffer make_buffer(std::size_t bytes) = 0;

    /// How its buffers were registered: "dma_buf" or "user_pages". After the first make_buffer().
    [[nodiscard]] virtual const char* registration() const = 0;

    /// The memory the HCA may reach: every mapping of the pool's node, or the buffers themselves.
    [[nodiscard]] virtual std::vector<address_range> ranges() const = 0;

  protected:
    message_memory() = default;
};

/// `access`: IBV_ACCESS_*. `device` must outlive the result.
[[nodiscard]] std::unique_ptr<message_memory> open_memory(memory_kind kind, const hca& device,
                                                          int access);

} // namespace samples

#endif
