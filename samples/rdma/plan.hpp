// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What is done in each round, and what the server's memory must then hold. Both sides compute it
// from the number of the round, so each can verify the other's work without being told.
#ifndef SAMPLES_RDMA_PLAN_HPP
#define SAMPLES_RDMA_PLAN_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace samples {

/// Bytes [offset, offset + length) of the data area. Both are odd.
struct extent {
    std::size_t offset;
    std::size_t length;
};

/// The operations of one round, in this order.
struct round_plan {
    extent client_write; // by RDMA write
    extent server_write; // by the server's processor
    extent read;         // by RDMA read
    std::uint64_t add;   // by fetch-and-add
    std::uint64_t swap;  // by compare-and-swap
};

/// The server's memory: two words for the atomics, then the data area.
inline constexpr std::size_t counter_offset = 0;
inline constexpr std::size_t word_offset = 8;
inline constexpr std::size_t data_offset = 64;
inline constexpr std::size_t smallest_memory = 256;

[[nodiscard]] round_plan plan_of(std::uint64_t round, std::size_t data_bytes);

/// Senders of the pattern (see pattern.hpp).
inline constexpr std::uint8_t client_sender = 0;
inline constexpr std::uint8_t server_sender = 128;

/// The expected contents of the server's memory. Starts as zeros.
class memory_model {
  public:
    explicit memory_model(std::size_t data_bytes) : data_(data_bytes) {}

    void apply_client_write(std::uint64_t round);
    void apply_server_write(std::uint64_t round);
    void apply_atomics(std::uint64_t round);

    [[nodiscard]] std::span<const std::byte> data() const { return data_; }
    [[nodiscard]] std::uint64_t counter() const { return counter_; }
    [[nodiscard]] std::uint64_t word() const { return word_; }

    /// How many of `bytes` differ from the data area at `offset`.
    [[nodiscard]] std::uint64_t wrong_bytes(std::span<const std::byte> bytes,
                                            std::size_t offset) const;

  private:
    std::vector<std::byte> data_;
    std::uint64_t counter_ = 0;
    std::uint64_t word_ = 0;
};

} // namespace samples

#endif
