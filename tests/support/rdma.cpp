// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "rdma.hpp"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "guest.hpp"
#include "patience.hpp"

namespace support {

namespace {

constexpr std::uint8_t port = 1;
constexpr int gid_index = 1; // the IPv4 RoCE v2 one
constexpr std::uint32_t queue_depth = 64;

/// One uverbs ioctl on a memory region: a header and its attributes.
class UverbsCommand {
  public:
    UverbsCommand& add(unsigned id, unsigned length, std::uint64_t data) {
        ib_uverbs_attr attribute{};
        attribute.attr_id = static_cast<__u16>(id);
        attribute.len = static_cast<__u16>(length);
        attribute.flags = UVERBS_ATTR_F_MANDATORY;
        attribute.data = data;
        attributes_.push_back(attribute);
        return *this;
    }

    /// Gives what the kernel left in the first attribute: the handle.
    std::uint64_t run(ibv_context* context, std::uint32_t driver_id, unsigned method,
                      const char* what) const {
        const std::size_t tail = attributes_.size() * sizeof attributes_[0];
        std::vector<std::uint64_t> words((sizeof(ib_uverbs_ioctl_hdr) + tail) / 8);
        auto* header = reinterpret_cast<ib_uverbs_ioctl_hdr*>(words.data());
        header->length = static_cast<__u16>(words.size() * 8);
        header->object_id = UVERBS_OBJECT_MR;
        header->method_id = static_cast<__u16>(method);
        header->num_attrs = static_cast<__u16>(attributes_.size());
        header->driver_id = driver_id;
        std::memcpy(header->attrs, attributes_.data(), tail);
        must(ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, header), what);
        return header->attrs[0].data;
    }

  private:
    std::vector<ib_uverbs_attr> attributes_;
};

void modify(ibv_qp* qp, ibv_qp_attr& attributes, int mask, const char* what) {
    if (const int error = ibv_modify_qp(qp, &attributes, mask)) {
        fail(what, error);
    }
}

ibv_gid gid_of(const Context& context) {
    ibv_gid gid{};
    if (ibv_query_gid(context.get(), port, gid_index, &gid) != 0) {
        fail("ibv_query_gid");
    }
    return gid;
}

/// How long a sender goes on without an answer: 4.096 us * 2^timeout, retries + 1 times.
struct Patience {
    std::uint8_t timeout;
    std::uint8_t retries;
};
/// An emulated CPU may be away for a while.
constexpr Patience with_the_living{18, 7};
/// For a peer that is going to die: some seconds, since it is alive at first.
constexpr Patience with_the_dead{17, 4};

void connect(ibv_qp* qp, std::uint32_t peer, const ibv_gid& gid, Patience patience) {
    ibv_qp_attr init{};
    init.qp_state = IBV_QPS_INIT;
    init.port_num = port;
    init.qp_access_flags = remote_access;
    modify(qp, init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");

    ibv_qp_attr receive{};
    receive.qp_state = IBV_QPS_RTR;
    receive.path_mtu = IBV_MTU_1024;
    receive.dest_qp_num = peer;
    receive.max_dest_rd_atomic = 1;
    receive.min_rnr_timer = 12;
    receive.ah_attr.is_global = 1;
    receive.ah_attr.grh.dgid = gid;
    receive.ah_attr.grh.sgid_index = gid_index;
    receive.ah_attr.grh.hop_limit = 1;
    receive.ah_attr.port_num = port;
    modify(qp, receive,
           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
           "RTR");

    ibv_qp_attr send{};
    send.qp_state = IBV_QPS_RTS;
    send.timeout = patience.timeout;
    send.retry_cnt = patience.retries;
    send.rnr_retry = 7;
    send.max_rd_atomic = 1;
    modify(qp, send,
           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC,
           "RTS");
}

std::uint64_t number(const void* addr) {
    return reinterpret_cast<std::uintptr_t>(addr);
}

ibv_sge element(const Place& place) {
    return {number(place.addr), place.length, place.lkey};
}

} // namespace

Context::Context(const std::string& ibdev) {
    int count = 0;
    const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> devices(ibv_get_device_list(&count),
                                                                       ibv_free_device_list);
    for (int i = 0; i < count; ++i) {
        if (ibdev == ibv_get_device_name(devices.get()[i])) {
            context_.reset(ibv_open_device(devices.get()[i]));
        }
    }
    if (!context_) {
        throw std::runtime_error("cannot open the HCA " + ibdev);
    }
}

Pd::Pd(const Context& context) : pd_(ibv_alloc_pd(context.get())) {
    if (!pd_) {
        fail("ibv_alloc_pd");
    }
}

Mr Mr::user_pages(const Pd& pd, void* addr, std::size_t length, int access) {
    Mr mr;
    mr.mr_ = ibv_reg_mr(pd.get(), addr, length, static_cast<unsigned>(access));
    if (mr.mr_ == nullptr) {
        fail("ibv_reg_mr");
    }
    mr.lkey_ = mr.mr_->lkey;
    mr.rkey_ = mr.mr_->rkey;
    return mr;
}

Mr Mr::dma_buf(const Pd& pd, int fd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
               std::uint32_t driver_id, int access) {
    Mr mr;
    UverbsCommand command;
    command.add(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, 0)
        .add(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0, pd.get()->handle)
        .add(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, sizeof offset, offset)
        .add(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, sizeof(std::uint64_t), length)
        .add(UVERBS_ATTR_REG_DMABUF_MR_IOVA, sizeof iova, iova)
        // A plain 32-bit input, although it is a descriptor.
        .add(UVERBS_ATTR_REG_DMABUF_MR_FD, sizeof(std::uint32_t), static_cast<std::uint32_t>(fd))
        .add(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, sizeof(std::uint32_t),
             static_cast<std::uint32_t>(access))
        .add(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, sizeof mr.lkey_, number(&mr.lkey_))
        .add(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, sizeof mr.rkey_, number(&mr.rkey_));
    mr.handle_ = static_cast<std::uint32_t>(
        command.run(pd.get()->context, driver_id, UVERBS_METHOD_REG_DMABUF_MR, "REG_DMABUF_MR"));
    mr.context_ = pd.get()->context;
    mr.driver_id_ = driver_id;
    return mr;
}

Mr Mr::of_region(const Pd& pd, const Node& node, void* addr, std::size_t length, int access) {
    if (!rxe_imports_dma_bufs()) {
        return user_pages(pd, addr, length, access);
    }
    std::uint64_t offset = 0;
    const UniqueFd fd = node.export_range(addr, length, &offset);
    return dma_buf(pd, fd.get(), offset, length, number(addr), node.info().driver_id, access);
}

Mr& Mr::operator=(Mr&& other) noexcept {
    if (this != &other) {
        reset();
        mr_ = std::exchange(other.mr_, nullptr);
        context_ = std::exchange(other.context_, nullptr);
        handle_ = other.handle_;
        driver_id_ = other.driver_id_;
        lkey_ = other.lkey_;
        rkey_ = other.rkey_;
    }
    return *this;
}

void Mr::reset() {
    if (mr_ != nullptr) {
        ibv_dereg_mr(std::exchange(mr_, nullptr));
    }
    if (context_ != nullptr) {
        try {
            UverbsCommand()
                .add(UVERBS_ATTR_DESTROY_MR_HANDLE, 0, handle_)
                .run(std::exchange(context_, nullptr), driver_id_, UVERBS_METHOD_MR_DESTROY,
                     "MR_DESTROY");
        } catch (const std::system_error& error) {
            // Only an HCA that was removed may refuse: its memory regions went with it.
            if (error.code().value() != EIO) {
                std::fprintf(stderr, "%s\n", error.what());
                std::abort();
            }
        }
    }
}

CqOwner make_cq(const Context& context) {
    CqOwner cq(ibv_create_cq(context.get(), queue_depth, nullptr, nullptr, 0));
    if (!cq) {
        fail("ibv_create_cq");
    }
    return cq;
}

QpOwner make_qp(const Pd& pd, const CqOwner& cq) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = cq.get();
    attributes.recv_cq = cq.get();
    attributes.cap = {queue_depth, queue_depth, 1, 1, 0};
    attributes.qp_type = IBV_QPT_RC;
    QpOwner qp(ibv_create_qp(pd.get(), &attributes));
    if (!qp) {
        fail("ibv_create_qp");
    }
    return qp;
}

Endpoint::Endpoint(const Context& context, const Pd& pd)
    : context_(context), cq_(make_cq(context)), qp_(make_qp(pd, cq_)) {}

void Endpoint::connect(std::uint32_t peer, Fate fate) const {
    support::connect(qp_.get(), peer, gid_of(context_),
                     fate == Fate::lives ? with_the_living : with_the_dead);
}

void Endpoint::post_write(const Place& from, const Place& to) const {
    ibv_sge sge = element(from);
    ibv_send_wr request{};
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = support::number(to.addr);
    request.wr.rdma.rkey = to.rkey;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(qp_.get(), &request, &bad)) {
        fail("ibv_post_send", error);
    }
}

Loopback::Loopback(const Context& context, const Pd& left, const Pd& right) {
    for (auto [cq, qp, pd] :
         {std::tuple(&left_cq_, &left_, &left), std::tuple(&right_cq_, &right_, &right)}) {
        *cq = make_cq(context);
        *qp = make_qp(*pd, *cq);
    }
    const ibv_gid gid = gid_of(context);
    connect(left_.get(), right_->qp_num, gid, with_the_living);
    connect(right_.get(), left_->qp_num, gid, with_the_living);
}

void Loopback::post_receive(const Place& into, std::uint64_t id) const {
    ibv_sge sge = element(into);
    ibv_recv_wr request{};
    request.wr_id = id;
    request.sg_list = &sge;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    if (const int error = ibv_post_recv(right_.get(), &request, &bad)) {
        fail("ibv_post_recv", error);
    }
}

void Loopback::post_send(const Place& from, std::uint64_t id) const {
    ibv_sge sge = element(from);
    ibv_send_wr request{};
    request.wr_id = id;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(left_.get(), &request, &bad)) {
        fail("ibv_post_send", error);
    }
}

ibv_wc_status Loopback::one_sided(ibv_send_wr& request, const Place& local,
                                  const Place& remote) const {
    ibv_sge sge = element(local);
    request.sg_list = &sge;
    request.num_sge = 1;
    request.send_flags = IBV_SEND_SIGNALED;
    if (request.opcode == IBV_WR_RDMA_WRITE || request.opcode == IBV_WR_RDMA_READ) {
        request.wr.rdma.remote_addr = number(remote.addr);
        request.wr.rdma.rkey = remote.rkey;
    } else {
        request.wr.atomic.remote_addr = number(remote.addr);
        request.wr.atomic.rkey = remote.rkey;
    }
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(left_.get(), &request, &bad)) {
        fail("ibv_post_send", error);
    }
    return left_completion().status;
}

ibv_wc_status Loopback::write(const Place& from, const Place& to) const {
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_WRITE;
    return one_sided(request, from, to);
}

ibv_wc_status Loopback::read(const Place& into, const Place& from) const {
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_READ;
    return one_sided(request, into, from);
}

ibv_wc_status Loopback::fetch_add(const Place& old, const Place& counter, std::uint64_t add) const {
    ibv_send_wr request{};
    request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    request.wr.atomic.compare_add = add;
    return one_sided(request, old, counter);
}

ibv_wc_status Loopback::compare_swap(const Place& old, const Place& counter, std::uint64_t expect,
                                     std::uint64_t value) const {
    ibv_send_wr request{};
    request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    request.wr.atomic.compare_add = expect;
    request.wr.atomic.swap = value;
    return one_sided(request, old, counter);
}

ibv_wc_status Loopback::send(const Place& from) const {
    post_send(from);
    const ibv_wc_status sent = left_completion().status;
    const ibv_wc_status received = right_completion().status;
    return sent != IBV_WC_SUCCESS ? sent : received;
}

ibv_wc next_completion(ibv_cq* cq) {
    const auto end = std::chrono::steady_clock::now() + patience;
    ibv_wc completion{};
    for (;;) {
        // Before the look, so that a processor that was away does not end it unlooked.
        const bool last = std::chrono::steady_clock::now() > end;
        const int got = ibv_poll_cq(cq, 1, &completion);
        if (got < 0) {
            throw std::runtime_error("ibv_poll_cq failed");
        }
        if (got == 1) {
            return completion;
        }
        if (last) {
            throw std::runtime_error("no completion within " + std::to_string(patience.count()) +
                                     " s");
        }
        sched_yield(); // an HCA made of software may want this processor
    }
}

} // namespace support
