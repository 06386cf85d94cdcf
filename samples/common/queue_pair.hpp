// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A completion queue and a reliably connected (RC) queue pair on it.
#ifndef SAMPLES_COMMON_QUEUE_PAIR_HPP
#define SAMPLES_COMMON_QUEUE_PAIR_HPP

#include "hca.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <infiniband/verbs.h>
#include <memory>
#include <span>

namespace samples {

/// What the other side must know of a queue pair.
struct qp_address {
    std::uint32_t number = 0;
    std::uint32_t first_psn = 0;
    std::uint16_t lid = 0;
    ibv_gid gid{};
};

/// How a queue pair is connected; the command line decides.
struct path_options {
    ibv_mtu mtu = IBV_MTU_1024;
    std::uint8_t service_level = 0;
};

/// How much may be outstanding on a queue pair.
struct queue_depths {
    unsigned sends;
    unsigned receives;
    unsigned gather = 1; // pieces of memory that one send may take together
};

class completion_queue {
  public:
    enum class mode { poll, events };

    /// Room for `entries` completions.
    completion_queue(const hca& device, unsigned entries, mode how);
    ~completion_queue();
    completion_queue(const completion_queue&) = delete;
    completion_queue& operator=(const completion_queue&) = delete;

    /// Waits for the next completion, by polling or asleep. Calls `look_around` every few
    /// milliseconds, of one wait or of many short ones; it throws to end the wait. Throws
    /// failure(peer) if none came within `timeout`, and failure(work_request) on a completion with
    /// an error, after `look_around_longer` had its chance to name the cause.
    [[nodiscard]] ibv_wc wait(std::chrono::milliseconds timeout,
                              const std::function<void()>& look_around,
                              const std::function<void()>& look_around_longer);

    [[nodiscard]] ibv_cq* get() const noexcept { return cq_; }

  private:
    [[nodiscard]] bool poll_once(ibv_wc& completion);
    void sleep_for_event(std::chrono::milliseconds at_most);

    ibv_comp_channel* channel_ = nullptr;
    ibv_cq* cq_ = nullptr;
    unsigned unacknowledged_ = 0;
    std::chrono::steady_clock::time_point next_look_;
};

class queue_pair {
  public:
    /// Both queues complete into `completions`, which must outlive this. `access`: what the peer
    /// may do by RDMA, IBV_ACCESS_REMOTE_*.
    queue_pair(const hca& device, const completion_queue& completions, const queue_depths& depths,
               int access);

    [[nodiscard]] const qp_address& address() const noexcept { return address_; }
    [[nodiscard]] ibv_qp* get() const noexcept { return qp_.get(); }

    /// Ready to receive and to send afterwards.
    void connect(const qp_address& peer, const path_options& path);

    void post_receive(std::uint64_t id, const ibv_sge& buffer);
    void post_send(std::uint64_t id, const ibv_sge& buffer);
    /// One message out of all the pieces, one behind the other.
    void post_gathered_send(std::uint64_t id, std::span<const ibv_sge> pieces);
    /// Any other request.
    void post(ibv_send_wr& request);

  private:
    struct destroy {
        void operator()(ibv_qp* qp) const noexcept { ibv_destroy_qp(qp); }
    };

    void modify(ibv_qp_attr& attributes, int mask, const char* state);

    const hca& device_;
    qp_address address_;
    std::unique_ptr<ibv_qp, destroy> qp_;
};

} // namespace samples

#endif
