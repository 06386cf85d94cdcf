// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The message layer (eager.h) between the ranks of a job: queue pairs, and waiting.
#ifndef SAMPLES_EAGER_POOL_TRANSPORT_HPP
#define SAMPLES_EAGER_POOL_TRANSPORT_HPP

#include "../common/queue_pair.hpp"
#include "eager.h"
#include "job.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace samples {

class transport {
  public:
    /// Opens the layer for a job of so many ranks. `options.pd`, `.hca` and `.peers` are set here.
    /// Throws failure(memory) and failure(hca).
    transport(const hca& device, unsigned ranks, eager_options options, completion_queue::mode how);

    /// Connects it to all other ranks of the job, which must outlive it.
    void connect(job& ranks, const path_options& path);

    struct give_back {
        eager* layer;
        void operator()(std::byte* block) const noexcept { eager_free(layer, block); }
    };
    using block = std::unique_ptr<std::byte, give_back>;
    /// Memory that rendezvous needs no copy of.
    [[nodiscard]] block allocate(std::size_t bytes);

    /// Begin a message. Each must be waited for, once.
    [[nodiscard]] eager_request* send(unsigned rank, std::span<const std::byte> message);
    [[nodiscard]] eager_request* receive(unsigned rank, std::span<std::byte> message);
    /// Returns the length of the message. Throws failure(peer) if a rank is gone.
    std::uint64_t wait(eager_request* request);

    /// Waits, in messages, until all ranks have got here.
    void barrier();

    [[nodiscard]] const eager_counts& counts() const { return *eager_get_counts(layer_.get()); }
    [[nodiscard]] std::uint32_t registration() const { return eager_registration(layer_.get()); }

  private:
    struct close {
        void operator()(eager* layer) const noexcept { eager_close(layer); }
    };

    [[nodiscard]] std::uint32_t peer_of(unsigned rank) const {
        return rank < job_->rank() ? rank : rank - 1;
    }
    [[nodiscard]] eager_request* new_request();
    std::uint64_t wait_for(eager_request* request, std::chrono::milliseconds timeout);
    void require(int result, exit_code code);

    const hca& device_;
    eager_options options_;
    job* job_ = nullptr;
    completion_queue completions_;
    // The layer knows of those that are not done as long as it lives; hence before it.
    std::deque<eager_request> requests_;
    std::vector<eager_request*> free_requests_;
    std::unique_ptr<eager, close> layer_;
    std::deque<queue_pair> queue_pairs_; // by rank without this one; gone before the layer
};

} // namespace samples

#endif
