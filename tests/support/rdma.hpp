// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Verbs objects with owners, and a pair of connected RC queue pairs on one HCA.
#ifndef TESTS_SUPPORT_RDMA_HPP
#define TESTS_SUPPORT_RDMA_HPP

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "node.hpp"

namespace support {

constexpr int remote_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

class Context {
  public:
    explicit Context(const std::string& ibdev = "rxe0");
    [[nodiscard]] ibv_context* get() const { return context_.get(); }

  private:
    struct Closer {
        void operator()(ibv_context* context) const { ibv_close_device(context); }
    };
    std::unique_ptr<ibv_context, Closer> context_;
};

class Pd {
  public:
    explicit Pd(const Context& context);
    [[nodiscard]] ibv_pd* get() const { return pd_.get(); }

  private:
    struct Closer {
        void operator()(ibv_pd* pd) const { ibv_dealloc_pd(pd); }
    };
    std::unique_ptr<ibv_pd, Closer> pd_;
};

/// A memory region by either path; deregistered at the end.
class Mr {
  public:
    /// ibv_reg_mr(): the kernel pins the pages of this process.
    static Mr user_pages(const Pd& pd, void* addr, std::size_t length, int access = remote_access);
    /// The uverbs call for a dma-buf, since providers lack the verb. iova is what
    /// work requests call the first byte.
    static Mr dma_buf(const Pd& pd, int fd, std::uint64_t offset, std::size_t length,
                      std::uint64_t iova, std::uint32_t driver_id, int access = remote_access);
    /// The path that this boot has for memory of the module: dma-buf where soft-RoCE
    /// imports them, else ibv_reg_mr() (mapping PAGES only).
    static Mr of_region(const Pd& pd, const Node& node, void* addr, std::size_t length,
                        int access = remote_access);

    Mr() = default;
    Mr(Mr&& other) noexcept { *this = std::move(other); }
    Mr& operator=(Mr&& other) noexcept;
    Mr(const Mr&) = delete;
    Mr& operator=(const Mr&) = delete;
    ~Mr() { reset(); }
    void reset();

    [[nodiscard]] std::uint32_t lkey() const { return lkey_; }
    [[nodiscard]] std::uint32_t rkey() const { return rkey_; }
    /// The verbs' own object; nullptr for a dma-buf.
    [[nodiscard]] ibv_mr* verbs() const { return mr_; }

  private:
    ibv_mr* mr_ = nullptr;           // user_pages()
    ibv_context* context_ = nullptr; // dma_buf()
    std::uint32_t handle_ = 0;
    std::uint32_t driver_id_ = 0;
    std::uint32_t lkey_ = 0;
    std::uint32_t rkey_ = 0;
};

/// Where a work request finds local or remote bytes.
struct Place {
    Place(const void* address, std::size_t bytes, const Mr* mr)
        : Place(address, bytes, mr->lkey(), mr->rkey()) {}
    Place(const void* address, std::size_t bytes, std::uint32_t local, std::uint32_t remote)
        : addr(address), length(static_cast<std::uint32_t>(bytes)), lkey(local), rkey(remote) {}

    const void* addr;
    std::uint32_t length;
    std::uint32_t lkey;
    std::uint32_t rkey;
};

struct CqCloser {
    void operator()(ibv_cq* cq) const { ibv_destroy_cq(cq); }
};
struct QpCloser {
    void operator()(ibv_qp* qp) const { ibv_destroy_qp(qp); }
};
using CqOwner = std::unique_ptr<ibv_cq, CqCloser>;
using QpOwner = std::unique_ptr<ibv_qp, QpCloser>;

CqOwner make_cq(const Context& context);
QpOwner make_qp(const Pd& pd, const CqOwner& cq);
/// Throws if none comes.
ibv_wc next_completion(ibv_cq* cq);

/// One RC queue pair whose peer is in another process.
class Endpoint {
  public:
    /// Of the peer: once it has died, requests to it end with an error some seconds later.
    enum class Fate { lives, dies };

    Endpoint(const Context& context, const Pd& pd);
    /// What the peer connects to.
    [[nodiscard]] std::uint32_t number() const { return qp_->qp_num; }
    void connect(std::uint32_t peer, Fate fate) const;
    void post_write(const Place& from, const Place& to) const;
    [[nodiscard]] ibv_wc completion() const { return next_completion(cq_.get()); }

  private:
    const Context& context_;
    CqOwner cq_;
    QpOwner qp_;
};

/// Two queue pairs of one HCA, connected with each other: `left` sends, `right` receives.
class Loopback {
  public:
    explicit Loopback(const Context& context, const Pd& pd) : Loopback(context, pd, pd) {}
    Loopback(const Context& context, const Pd& left, const Pd& right);

    void post_receive(const Place& into, std::uint64_t id = 0) const;
    void post_send(const Place& from, std::uint64_t id = 0) const;
    /// Each of these runs to its completion and gives its status.
    [[nodiscard]] ibv_wc_status write(const Place& from, const Place& to) const;
    [[nodiscard]] ibv_wc_status read(const Place& into, const Place& from) const;
    [[nodiscard]] ibv_wc_status fetch_add(const Place& old, const Place& counter,
                                          std::uint64_t add) const;
    [[nodiscard]] ibv_wc_status compare_swap(const Place& old, const Place& counter,
                                             std::uint64_t expect, std::uint64_t value) const;
    /// send() and the receive that takes it; the receive must be posted.
    [[nodiscard]] ibv_wc_status send(const Place& from) const;
    /// Next completion of either side; throws if none comes.
    [[nodiscard]] ibv_wc left_completion() const { return next_completion(left_cq_.get()); }
    [[nodiscard]] ibv_wc right_completion() const { return next_completion(right_cq_.get()); }
    [[nodiscard]] ibv_qp* right() const { return right_.get(); }

  private:
    [[nodiscard]] ibv_wc_status one_sided(ibv_send_wr& request, const Place& local,
                                          const Place& remote) const;

    CqOwner left_cq_;
    CqOwner right_cq_;
    QpOwner left_;
    QpOwner right_;
};

} // namespace support

#endif
