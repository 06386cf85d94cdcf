// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The two sides of the RDMA sample. The client does all the operations, on the server's memory;
// both verify the outcome.
#ifndef SAMPLES_RDMA_SIDES_HPP
#define SAMPLES_RDMA_SIDES_HPP

#include "endpoint.hpp"
#include "plan.hpp"

#include <array>
#include <chrono>
#include <cstdint>

namespace samples {

enum operation : std::size_t { op_write, op_read, op_fetch_add, op_compare_swap, operations };

struct operation_total {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t wrong = 0; // bytes, of the atomics values
    std::chrono::nanoseconds time{0};
};

using client_totals = std::array<operation_total, operations>;

/// `remote`: the server's memory. `local`: a buffer as large, `result` one
/// of 8 bytes on an 8 byte boundary.
[[nodiscard]] client_totals run_client(endpoint& side, std::uint64_t rounds,
                                       const remote_memory& remote, const message_buffer& local,
                                       const message_buffer& result);

/// Returns how many bytes and words of `memory` were found wrong.
[[nodiscard]] std::uint64_t run_server(endpoint& side, std::uint64_t rounds,
                                       const message_buffer& memory);

} // namespace samples

#endif
