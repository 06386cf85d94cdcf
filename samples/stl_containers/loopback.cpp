// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "loopback.hpp"

namespace samples {
namespace {

constexpr std::uint64_t send_id = 1;
constexpr std::uint64_t receive_id = 2;

} // namespace

loopback::loopback(const hca& device, completion_queue::mode how, const path_options& path,
                   unsigned gather, std::chrono::milliseconds timeout)
    : completions_(device, 2, how),
      sender_(device, completions_, {1, 1, gather}, 0),
      receiver_(device, completions_, {1, 1}, 0),
      timeout_(timeout) {
    receiver_.connect(sender_.address(), path);
    sender_.connect(receiver_.address(), path);
}

std::uint32_t loopback::transfer(std::span<const ibv_sge> from, const ibv_sge& to) {
    receiver_.post_receive(receive_id, to);
    sender_.post_gathered_send(send_id, from);
    std::uint32_t length = 0;
    for (int outstanding = 2; outstanding > 0; --outstanding) {
        const ibv_wc done = completions_.wait(
            timeout_, [] {}, [] {});
        if (done.wr_id == receive_id) {
            length = done.byte_len;
        }
    }
    ++messages_;
    bytes_ += length;
    return length;
}

} // namespace samples
