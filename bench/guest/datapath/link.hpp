// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Messages from one queue pair to another of the same soft-RoCE HCA, there and back.
#ifndef BENCH_GUEST_LINK_HPP
#define BENCH_GUEST_LINK_HPP

#include <cstddef>

#include "support/rdma.hpp"

namespace bench {

class message_link {
  public:
    message_link(const support::Context& context, const support::Pd& pd)
        : there_(context, pd), back_(context, pd) {}

    /// One message that arrives, as the sender and the receiver see it end.
    void send(const support::Place& from, const support::Place& into) const {
        send(there_, from, into);
    }
    /// One message there and its answer back.
    void ping_pong(const support::Place& left, const support::Place& right) const {
        send(there_, left, right);
        send(back_, right, left);
    }
    /// `count` messages under way at once, at most 64.
    void stream(const support::Place& from, const support::Place& into, int count) const;

  private:
    static void send(const support::Loopback& way, const support::Place& from,
                     const support::Place& into);

    support::Loopback there_;
    support::Loopback back_;
};

} // namespace bench

#endif
