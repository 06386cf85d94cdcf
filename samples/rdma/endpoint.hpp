// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// One side of the RDMA sample: its queue pair, its memory, and short notes to the other side.
#ifndef SAMPLES_RDMA_ENDPOINT_HPP
#define SAMPLES_RDMA_ENDPOINT_HPP

#include "../common/handshake.hpp"
#include "../common/message_memory.hpp"
#include "../common/peer_link.hpp"
#include "../common/queue_pair.hpp"

#include <cstdint>

namespace samples {

/// A message that says what was done. It goes by SEND: when it has arrived, everything that was
/// written before it over the same queue pair has, too (IB specification 9.5, ordering).
struct note {
    std::uint64_t round;
    std::uint64_t wrong; // bytes or values that were not as expected
};

class endpoint {
  public:
    /// `access`: what the other side may do with this side's memory, IBV_ACCESS_*.
    endpoint(const hca& device, message_memory& memory, completion_queue::mode how, int access);

    [[nodiscard]] const qp_address& address() const { return qp_.address(); }

    /// Connects, and returns when both sides are ready for the first note. `link` tells during all
    /// waits whether the peer is there, and must live as long.
    void connect(peer_link& link, const qp_address& peer, const path_options& path);

    /// Does one RDMA operation and waits until it is complete.
    void perform(ibv_send_wr& request);

    /// Notes alternate: each side sends one and then receives one, or the other way round.
    void send_note(const note& message);
    [[nodiscard]] note receive_note();

  private:
    void wait_for(bool& happened);

    peer_link* link_ = nullptr;
    completion_queue completions_;
    message_buffer out_;
    message_buffer in_;
    bool request_done_ = false;
    bool note_arrived_ = false;
    queue_pair qp_; // last: destroyed before the buffers that its requests name
};

} // namespace samples

#endif
