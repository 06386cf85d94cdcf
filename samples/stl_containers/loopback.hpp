// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A connection from this process to itself: what is sent goes through the HCA and comes back.
#ifndef SAMPLES_STL_CONTAINERS_LOOPBACK_HPP
#define SAMPLES_STL_CONTAINERS_LOOPBACK_HPP

#include "../common/queue_pair.hpp"

#include <chrono>
#include <cstdint>
#include <span>

namespace samples {

class loopback {
  public:
    /// `device` must outlive it. `gather`: pieces of memory that one message may be sent from.
    loopback(const hca& device, completion_queue::mode how, const path_options& path,
             unsigned gather, std::chrono::milliseconds timeout);

    /// Sends the pieces as one message into `to`, and returns when it has arrived.
    /// Returns its length in bytes.
    std::uint32_t transfer(std::span<const ibv_sge> from, const ibv_sge& to);
    std::uint32_t transfer(const ibv_sge& from, const ibv_sge& to) {
        return transfer(std::span(&from, 1), to);
    }

    [[nodiscard]] std::uint64_t messages() const { return messages_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  private:
    completion_queue completions_;
    queue_pair sender_;
    queue_pair receiver_;
    std::chrono::milliseconds timeout_;
    std::uint64_t messages_ = 0;
    std::uint64_t bytes_ = 0;
};

} // namespace samples

#endif
