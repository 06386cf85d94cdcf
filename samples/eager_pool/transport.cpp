// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "transport.hpp"

#include "../common/exit_codes.hpp"

namespace samples {
namespace {

// How long the news of a dead rank may lag behind the failed work request that it caused.
constexpr std::chrono::milliseconds peer_grace(1000);

// Who has nothing to do waits in a barrier for as long as the others measure.
constexpr int barrier_patience = 10; // times the timeout

unsigned completions_of(const eager_options& options, unsigned peers) {
    return peers * (eager_send_depth(&options) + eager_receive_depth(&options));
}

} // namespace

transport::transport(const hca& device, unsigned ranks, eager_options options,
                     completion_queue::mode how)
    : device_(device),
      options_(options),
      completions_(device, completions_of(options, ranks - 1), how) {
    options_.pd = device.protection_domain();
    options_.hca = device.name().c_str();
    options_.peers = ranks - 1;
    eager* made = nullptr;
    const int result = eager_open(&options_, &made);
    layer_.reset(made);
    require(result, exit_code::memory);
}

void transport::connect(job& ranks, const path_options& path) {
    job_ = &ranks;
    const queue_depths depths{eager_send_depth(&options_), eager_receive_depth(&options_)};
    std::vector<qp_address> mine(ranks.size());
    for (unsigned rank = 0; rank < ranks.size(); ++rank) {
        if (rank != ranks.rank()) {
            const queue_pair& made =
                queue_pairs_.emplace_back(device_, completions_, depths, IBV_ACCESS_REMOTE_READ);
            mine[rank] = made.address();
            require(eager_add_peer(layer_.get(), peer_of(rank), made.get()),
                    exit_code::work_request);
        }
    }
    const auto theirs = ranks.exchange(mine);
    for (unsigned rank = 0; rank < ranks.size(); ++rank) {
        if (rank != ranks.rank()) {
            queue_pairs_[peer_of(rank)].connect(theirs[rank], path);
        }
    }
    // From here on anyone may send.
    ranks.meet();
}

void transport::require(int result, exit_code code) {
    if (result < 0) {
        throw failure(code, layer_ ? eager_message(layer_.get()) : "no memory for the layer");
    }
}

transport::block transport::allocate(std::size_t bytes) {
    void* const memory = eager_alloc(layer_.get(), bytes);
    if (memory == nullptr) {
        throw failure(exit_code::memory, eager_message(layer_.get()));
    }
    return {static_cast<std::byte*>(memory), give_back{layer_.get()}};
}

eager_request* transport::new_request() {
    if (free_requests_.empty()) {
        return &requests_.emplace_back();
    }
    eager_request* const request = free_requests_.back();
    free_requests_.pop_back();
    return request;
}

eager_request* transport::send(unsigned rank, std::span<const std::byte> message) {
    eager_request* const request = new_request();
    require(eager_send(layer_.get(), peer_of(rank), message.data(), message.size(), request),
            exit_code::work_request);
    return request;
}

eager_request* transport::receive(unsigned rank, std::span<std::byte> message) {
    eager_request* const request = new_request();
    require(eager_receive(layer_.get(), peer_of(rank), message.data(), message.size(), request),
            exit_code::work_request);
    return request;
}

std::uint64_t transport::wait(eager_request* request) {
    return wait_for(request, job_->timeout());
}

std::uint64_t transport::wait_for(eager_request* request, std::chrono::milliseconds timeout) {
    while (!request->done) {
        const ibv_wc done = completions_.wait(
            timeout, [this] { job_->check(); }, [this] { job_->check_for(peer_grace); });
        require(eager_complete(layer_.get(), &done), exit_code::work_request);
    }
    free_requests_.push_back(request);
    return request->bytes;
}

void transport::barrier() {
    // Rank 0 hears of all, then tells all.
    const auto wait = [this](eager_request* request) {
        wait_for(request, barrier_patience * job_->timeout());
    };
    const auto with_others = [this, &wait](auto begin) {
        std::vector<eager_request*> begun;
        for (unsigned rank = 1; rank < job_->size(); ++rank) {
            begun.push_back(begin(rank));
        }
        for (eager_request* request : begun) {
            wait(request);
        }
    };
    if (job_->rank() == 0) {
        with_others([this](unsigned rank) { return receive(rank, {}); });
        with_others([this](unsigned rank) { return send(rank, {}); });
    } else {
        wait(send(0, {}));
        wait(receive(0, {}));
    }
}

} // namespace samples
