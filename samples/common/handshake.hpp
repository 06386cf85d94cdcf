// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the two sides tell each other before the run: where to reach this side's queue pair and
// memory, and the options that both must have been given alike.
#ifndef SAMPLES_COMMON_HANDSHAKE_HPP
#define SAMPLES_COMMON_HANDSHAKE_HPP

#include "peer_link.hpp"
#include "queue_pair.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace samples {

enum class sample_id : std::uint64_t { rc_pingpong = 1, rdma = 2, eager_pool = 3 };

/// An option on which both sides must agree. The order in the list is part of the protocol.
struct agreed_option {
    std::string name; // as on the command line; not sent
    std::uint64_t value;
};

/// Memory that the other side may reach by RDMA.
struct remote_memory {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint32_t key = 0;
};

struct peer_address {
    qp_address qp;
    remote_memory memory;
};

/// The client speaks first: a stranger who connects to a server is told nothing.
enum class speaker { client, server };

/// Sends this side's address and options, receives the peer's. Throws failure(mismatch) that names
/// the first option that differs with both values; both sides then throw.
[[nodiscard]] peer_address exchange_addresses(peer_link& link, speaker self, sample_id sample,
                                              const peer_address& mine,
                                              const std::vector<agreed_option>& options);

/// Waits until both sides have got here.
void meet(peer_link& link);

/// Numbers as they travel between the two sides: 64 bits, big-endian.
[[nodiscard]] std::vector<std::byte> pack(const std::vector<std::uint64_t>& numbers);
/// Throws failure(mismatch) if `bytes` does not hold exactly `count` of them.
[[nodiscard]] std::vector<std::uint64_t> unpack(const std::vector<std::byte>& bytes,
                                                std::size_t count);

} // namespace samples

#endif
