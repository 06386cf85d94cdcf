// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The ping-pong itself: messages go to and fro over one connected queue pair, one at a time.
#ifndef SAMPLES_RC_PINGPONG_PINGPONG_HPP
#define SAMPLES_RC_PINGPONG_PINGPONG_HPP

#include "../common/handshake.hpp"
#include "../common/message_memory.hpp"
#include "../common/pattern.hpp"
#include "../common/peer_link.hpp"
#include "../common/queue_pair.hpp"

#include <array>
#include <chrono>
#include <cstdint>

namespace samples {

struct pingpong_options {
    std::uint64_t message_bytes = 4096;
    std::uint64_t iterations = 1000;
    std::uint32_t receive_depth = 500;
    bool check = false;
};

enum class pingpong_side : std::uint8_t { client, server };

/// What one side saw.
struct pingpong_result {
    std::uint64_t wrong_bytes = 0; // of the messages received, with `check`
    std::uint64_t first_wrong_iteration = 0;
    std::uint64_t first_wrong_byte = 0; // valid if wrong_bytes > 0
    std::chrono::nanoseconds elapsed{0};
};

class pingpong {
  public:
    /// Takes its buffers from `memory` and makes its queue pair. All arguments must outlive it.
    pingpong(const hca& device, message_memory& memory, completion_queue::mode how,
             const pingpong_options& options, pingpong_side side);

    [[nodiscard]] const qp_address& address() const { return qp_.address(); }

    /// Connects, exchanges `iterations` messages each way and returns once the peer has done so
    /// too. Messages are filled and checked within the time that is measured.
    [[nodiscard]] pingpong_result run(peer_link& link, const qp_address& peer,
                                      const path_options& path);

  private:
    void post_next_receive();
    void send_message(std::uint64_t iteration);
    void check_message(std::uint64_t iteration);
    void wait_until(peer_link& link, std::uint64_t sends, std::uint64_t receives);

    [[nodiscard]] message_buffer& receive_slot(std::uint64_t iteration) {
        return receive_slots_[iteration % receive_slots_.size()];
    }

    const pingpong_options& options_;
    pingpong_side side_;
    completion_queue completions_;
    message_buffer send_buffer_;
    // Receives are posted ahead into both in turn. At most one message is under way to this side,
    // so the one that is being checked and the next never share a slot.
    std::array<message_buffer, 2> receive_slots_;
    std::uint64_t receives_posted_ = 0;
    std::uint64_t receives_done_ = 0;
    std::uint64_t sends_done_ = 0;
    std::uint32_t last_length_ = 0; // of the message received last
    pingpong_result result_;
    queue_pair qp_; // last: destroyed before the buffers that its requests name
};

} // namespace samples

#endif
