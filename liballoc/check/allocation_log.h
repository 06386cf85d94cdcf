// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Where each live block was allocated.
#ifndef HCAMEM_CHECK_ALLOCATION_LOG_H
#define HCAMEM_CHECK_ALLOCATION_LOG_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace hcamem::core {

class allocation_log {
  public:
    /// With the caller's stack. Without memory for it, the block is missing in the log.
    void add(const void* block, std::size_t bytes) noexcept;
    void remove(const void* block) noexcept;

    /// Writes to standard error where the blocks in [begin, end) come from: one paragraph for
    /// each stack, that of the most bytes first.
    void print(const void* begin, const void* end) noexcept;

  private:
    static constexpr std::size_t most_frames = 24;

    struct allocation {
        std::size_t bytes = 0;
        std::size_t frames = 0;
        std::array<void*, most_frames> stack{};

        [[nodiscard]] std::size_t first_of_caller() const noexcept;
    };
    struct place {
        const allocation* first = nullptr;
        std::size_t blocks = 0;
        std::size_t bytes = 0;
    };

    static void print_place(const place& from) noexcept;

    std::mutex lock_;
    std::unordered_map<const void*, allocation> live_;
};

} // namespace hcamem::core

#endif
