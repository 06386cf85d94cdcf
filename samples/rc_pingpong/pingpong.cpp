// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "pingpong.hpp"

#include "../common/exit_codes.hpp"

#include <algorithm>

namespace samples {
namespace {

constexpr std::uint64_t receive_id = 1;
constexpr std::uint64_t send_id = 2;
constexpr unsigned send_depth = 1;

// How long the news of a dead peer may lag behind the failed work request that it caused.
constexpr std::chrono::milliseconds peer_grace(1000);

message_id message(std::uint64_t iteration, pingpong_side sender) {
    // Half the range of bytes apart, so that a message that comes back to its sender is seen.
    constexpr std::uint8_t server_offset = 128;
    return {iteration, sender == pingpong_side::server ? server_offset : std::uint8_t{0}};
}

pingpong_side other(pingpong_side side) {
    return side == pingpong_side::client ? pingpong_side::server : pingpong_side::client;
}

} // namespace

pingpong::pingpong(const hca& device, message_memory& memory, completion_queue::mode how,
                   const pingpong_options& options, pingpong_side side)
    : options_(options),
      side_(side),
      completions_(device, options.receive_depth + send_depth, how),
      send_buffer_(memory.make_buffer(options.message_bytes)),
      receive_slots_{memory.make_buffer(options.message_bytes),
                     memory.make_buffer(options.message_bytes)},
      qp_(device, completions_, {send_depth, options.receive_depth}, 0) {}

pingpong_result pingpong::run(peer_link& link, const qp_address& peer, const path_options& path) {
    qp_.connect(peer, path);
    const std::uint64_t first_receives =
        std::min<std::uint64_t>(options_.receive_depth, options_.iterations);
    for (std::uint64_t i = 0; i < first_receives; ++i) {
        post_next_receive();
    }
    // From here on the peer may send.
    meet(link);

    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < options_.iterations; ++i) {
        // The send buffer is filled anew only after its last message was acknowledged.
        if (side_ == pingpong_side::client) {
            send_message(i);
            wait_until(link, i + 1, i + 1);
        } else {
            wait_until(link, i, i + 1);
        }
        // Before the peer gets its answer: even with a receive depth of 1 it finds a receive.
        if (receives_posted_ < options_.iterations) {
            post_next_receive();
        }
        if (options_.check) {
            check_message(i);
        }
        if (side_ == pingpong_side::server) {
            send_message(i);
        }
    }
    wait_until(link, options_.iterations, options_.iterations);
    result_.elapsed = std::chrono::steady_clock::now() - start;
    return result_;
}

void pingpong::post_next_receive() {
    qp_.post_receive(receive_id, receive_slot(receives_posted_).sge());
    ++receives_posted_;
}

void pingpong::send_message(std::uint64_t iteration) {
    if (options_.check) {
        fill_pattern(send_buffer_.bytes, message(iteration, side_));
    }
    qp_.post_send(send_id, send_buffer_.sge());
}

void pingpong::check_message(std::uint64_t iteration) {
    const auto bytes = receive_slot(iteration).bytes;
    comparison found = compare_pattern(bytes, message(iteration, other(side_)));
    if (found.wrong_bytes == 0 && last_length_ != bytes.size()) {
        found = {bytes.size(), std::min<std::size_t>(last_length_, bytes.size())};
    }
    if (found.wrong_bytes == 0) {
        return;
    }
    if (result_.wrong_bytes == 0) {
        result_.first_wrong_iteration = iteration;
        result_.first_wrong_byte = found.first_wrong;
    }
    result_.wrong_bytes += found.wrong_bytes;
}

void pingpong::wait_until(peer_link& link, std::uint64_t sends, std::uint64_t receives) {
    while (sends_done_ < sends || receives_done_ < receives) {
        const ibv_wc done = completions_.wait(
            link.timeout(), [&link] { link.check(); }, [&link] { link.check_for(peer_grace); });
        if (done.wr_id == send_id) {
            ++sends_done_;
        } else {
            ++receives_done_;
            last_length_ = done.byte_len;
        }
    }
}

} // namespace samples
