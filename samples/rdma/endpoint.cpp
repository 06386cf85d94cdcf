// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "endpoint.hpp"

#include "../common/exit_codes.hpp"

#include <cstring>
#include <endian.h>

namespace samples {
namespace {

constexpr std::uint64_t request_id = 1;
constexpr std::uint64_t note_id = 2;
constexpr unsigned queue_depth = 1;
constexpr std::chrono::milliseconds peer_grace(1000);

} // namespace

endpoint::endpoint(const hca& device, message_memory& memory, completion_queue::mode how,
                   int access)
    : completions_(device, 2 * queue_depth, how),
      out_(memory.make_buffer(sizeof(note))),
      in_(memory.make_buffer(sizeof(note))),
      qp_(device, completions_, {queue_depth, queue_depth}, access) {}

void endpoint::connect(peer_link& link, const qp_address& peer, const path_options& path) {
    link_ = &link;
    qp_.connect(peer, path);
    qp_.post_receive(note_id, in_.sge());
    meet(link);
}

void endpoint::perform(ibv_send_wr& request) {
    request_done_ = false;
    request.wr_id = request_id;
    qp_.post(request);
    wait_for(request_done_);
}

void endpoint::send_note(const note& message) {
    const note travelling{htobe64(message.round), htobe64(message.wrong)};
    std::memcpy(out_.bytes.data(), &travelling, sizeof(travelling));
    ibv_sge buffer = out_.sge();
    ibv_send_wr request{};
    request.sg_list = &buffer;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    perform(request);
}

note endpoint::receive_note() {
    wait_for(note_arrived_);
    note_arrived_ = false;
    note travelled{};
    std::memcpy(&travelled, in_.bytes.data(), sizeof(travelled));
    qp_.post_receive(note_id, in_.sge());
    return {be64toh(travelled.round), be64toh(travelled.wrong)};
}

void endpoint::wait_for(bool& happened) {
    while (!happened) {
        const ibv_wc done = completions_.wait(
            link_->timeout(), [this] { link_->check(); }, [this] { link_->check_for(peer_grace); });
        if (done.wr_id == request_id) {
            request_done_ = true;
            continue;
        }
        if (done.byte_len != sizeof(note)) {
            throw failure(exit_code::peer,
                          "the peer sent a message of " + std::to_string(done.byte_len) + " bytes");
        }
        note_arrived_ = true;
    }
}

} // namespace samples
