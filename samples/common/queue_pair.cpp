// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "queue_pair.hpp"

#include "exit_codes.hpp"
#include "program.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <random>
#include <sched.h>
#include <string>
#include <vector>

namespace samples {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A peer that stays away is noticed within this time.
constexpr milliseconds look_around_interval(20);
constexpr unsigned polls_between_looks = 64;
// Completion events are acknowledged in batches: each acknowledgement takes a lock.
constexpr unsigned events_between_acknowledgements = 64;

// Local ACK timeout 4.096 us * 2^16 = 0.27 s, IB specification 9.7.6.1.3: long enough for an
// emulated machine whose processors are taken away. A dead peer is noticed by its TCP connection.
constexpr std::uint8_t acknowledge_timeout = 16;
constexpr std::uint8_t retries = 7;
// 7 = without end, IB specification 9.7.5.2.8.
constexpr std::uint8_t receiver_not_ready_retries = 7;
constexpr std::uint8_t receiver_not_ready_timer = 12; // 0.64 ms

} // namespace

completion_queue::completion_queue(const hca& device, unsigned entries, mode how) {
    if (how == mode::events) {
        channel_ = ibv_create_comp_channel(device.context());
        if (channel_ == nullptr) {
            throw failure(exit_code::hca, with_errno("cannot create a completion channel"));
        }
        // A wait must be able to look around, so reading the event may not block.
        fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
    }
    cq_ = ibv_create_cq(device.context(), static_cast<int>(entries), nullptr, channel_, 0);
    if (cq_ == nullptr) {
        const std::string line = with_errno("cannot create a completion queue of " +
                                            std::to_string(entries) + " entries");
        if (channel_ != nullptr) {
            ibv_destroy_comp_channel(channel_);
        }
        throw failure(exit_code::hca, line);
    }
}

completion_queue::~completion_queue() {
    // ibv_destroy_cq() waits for every event to be acknowledged.
    if (unacknowledged_ > 0) {
        ibv_ack_cq_events(cq_, unacknowledged_);
    }
    ibv_destroy_cq(cq_);
    if (channel_ != nullptr) {
        ibv_destroy_comp_channel(channel_);
    }
}

bool completion_queue::poll_once(ibv_wc& completion) {
    const int count = ibv_poll_cq(cq_, 1, &completion);
    if (count < 0) {
        throw failure(exit_code::work_request, "cannot poll the completion queue");
    }
    return count > 0;
}

void completion_queue::sleep_for_event(milliseconds at_most) {
    pollfd entry{channel_->fd, POLLIN, 0};
    if (poll(&entry, 1, static_cast<int>(at_most.count())) <= 0) {
        return;
    }
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(channel_, &cq, &context) != 0) {
        return;
    }
    if (++unacknowledged_ == events_between_acknowledgements) {
        ibv_ack_cq_events(cq_, unacknowledged_);
        unacknowledged_ = 0;
    }
}

ibv_wc completion_queue::wait(milliseconds timeout, const std::function<void()>& look_around,
                              const std::function<void()>& look_around_longer) {
    // At every call, and by the time since the last look of all calls: where each wait is short,
    // none would ever get to look around.
    throw_if_interrupted();
    ibv_wc completion{};
    const auto start = clock::now();
    if (start >= next_look_) {
        next_look_ = start + look_around_interval;
        look_around();
    }
    for (unsigned polls = 1; !poll_once(completion); ++polls) {
        if (channel_ != nullptr) {
            // Ask for the event first and poll once more: a completion that came in between
            // raises none.
            if (ibv_req_notify_cq(cq_, 0) != 0) {
                throw failure(exit_code::hca, "cannot ask for completion events");
            }
            if (poll_once(completion)) {
                break;
            }
            sleep_for_event(look_around_interval);
        } else if (polls % polls_between_looks != 0) {
            continue;
        } else {
            sched_yield(); // both sides may share one processor
        }
        const auto now = clock::now();
        if (now < next_look_) {
            continue;
        }
        next_look_ = now + look_around_interval;
        throw_if_interrupted();
        look_around();
        if (now - start > timeout) {
            throw failure(exit_code::peer, "nothing came from the peer within " +
                                               std::to_string(timeout.count() / 1000) + " s");
        }
    }
    if (completion.status != IBV_WC_SUCCESS) {
        look_around_longer();
        throw failure(exit_code::work_request,
                      std::string("work request failed: ") + ibv_wc_status_str(completion.status));
    }
    return completion;
}

queue_pair::queue_pair(const hca& device, const completion_queue& completions,
                       const queue_depths& depths, int access)
    : device_(device) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = completions.get();
    wanted.recv_cq = completions.get();
    wanted.cap = {depths.sends, depths.receives, depths.gather, 1, 0};
    wanted.qp_type = IBV_QPT_RC;
    wanted.sq_sig_all = 1;
    qp_.reset(ibv_create_qp(device.protection_domain(), &wanted));
    if (!qp_) {
        throw failure(exit_code::hca, with_errno("cannot create a queue pair"));
    }

    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = device.port();
    attributes.qp_access_flags = static_cast<unsigned>(access);
    modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
           "initialised");

    address_.number = qp_->qp_num;
    address_.first_psn = std::random_device()() & 0xffffffU; // packet numbers have 24 bits
    address_.lid = device.lid();
    address_.gid = device.gid();
}

void queue_pair::modify(ibv_qp_attr& attributes, int mask, const char* state) {
    const int error = ibv_modify_qp(qp_.get(), &attributes, mask);
    if (error != 0) {
        throw failure(exit_code::hca,
                      with_errno(std::string("cannot make the queue pair ") + state, error));
    }
}

void queue_pair::connect(const qp_address& peer, const path_options& path) {
    ibv_qp_attr receive{};
    receive.qp_state = IBV_QPS_RTR;
    receive.path_mtu = path.mtu;
    receive.dest_qp_num = peer.number;
    receive.rq_psn = peer.first_psn;
    receive.max_dest_rd_atomic = 1;
    receive.min_rnr_timer = receiver_not_ready_timer;
    receive.ah_attr.dlid = peer.lid;
    receive.ah_attr.sl = path.service_level;
    receive.ah_attr.port_num = device_.port();
    if (device_.gid_index()) {
        receive.ah_attr.is_global = 1;
        receive.ah_attr.grh.dgid = peer.gid;
        receive.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(*device_.gid_index());
        receive.ah_attr.grh.hop_limit = 64;
    }
    modify(receive,
           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
           "ready to receive");

    ibv_qp_attr send{};
    send.qp_state = IBV_QPS_RTS;
    send.timeout = acknowledge_timeout;
    send.retry_cnt = retries;
    send.rnr_retry = receiver_not_ready_retries;
    send.sq_psn = address_.first_psn;
    send.max_rd_atomic = 1;
    modify(send,
           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC,
           "ready to send");
}

void queue_pair::post_receive(std::uint64_t id, const ibv_sge& buffer) {
    ibv_sge entry = buffer; // the verbs take it writable
    ibv_recv_wr request{};
    request.wr_id = id;
    request.sg_list = &entry;
    request.num_sge = 1;
    ibv_recv_wr* refused = nullptr;
    const int error = ibv_post_recv(qp_.get(), &request, &refused);
    if (error != 0) {
        throw failure(exit_code::work_request, with_errno("cannot post a receive", error));
    }
}

void queue_pair::post_send(std::uint64_t id, const ibv_sge& buffer) {
    ibv_sge entry = buffer;
    ibv_send_wr request{};
    request.wr_id = id;
    request.sg_list = &entry;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    post(request);
}

void queue_pair::post_gathered_send(std::uint64_t id, std::span<const ibv_sge> pieces) {
    std::vector<ibv_sge> entries(pieces.begin(), pieces.end());
    ibv_send_wr request{};
    request.wr_id = id;
    request.sg_list = entries.data();
    request.num_sge = static_cast<int>(entries.size());
    request.opcode = IBV_WR_SEND;
    post(request);
}

void queue_pair::post(ibv_send_wr& request) {
    ibv_send_wr* refused = nullptr;
    const int error = ibv_post_send(qp_.get(), &request, &refused);
    if (error != 0) {
        throw failure(exit_code::work_request, with_errno("cannot post a send request", error));
    }
}

} // namespace samples
