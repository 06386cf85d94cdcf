// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The paths a slab can be registered by, best first: dma-buf by the verb, dma-buf
// by the kernel's call, ibv_reg_mr(). Which of the first two works is a property
// of the HCA and its provider, so it is found out once.
#include <cerrno>
#include <cstring>
#include <string>

#include <infiniband/verbs.h>
#include <sys/resource.h>

#include "error/message.h"
#include "os/file.h"
#include "source/exporter.h"
#include "source/node.h"
#include "verbs/registrar.h"
#include "verbs/uverbs_mr.h"

namespace hcamem::core {
namespace {

// What a dma-buf registration takes: ib_uverbs_reg_dmabuf_mr() in
// drivers/infiniband/core/uverbs_std_types_mr.c.
constexpr unsigned dmabuf_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                   IBV_ACCESS_RELAXED_ORDERING;
constexpr unsigned remote_change = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

/// Errors that say "this way does not exist here", not "this slab failed".
bool is_unsupported(int error) noexcept {
    return error == EOPNOTSUPP || error == ENOSYS || error == ENOTTY || error == EPROTONOSUPPORT;
}

/// Deregistration of an MR whose HCA went away: the kernel took it down already.
bool is_gone(int error) noexcept {
    return error == EIO || error == ENODEV;
}

/// The HCA's present name; udev may have renamed it since libibverbs listed it.
std::string device_name(const ibv_context* context) {
    const std::string uverbs = context->device->dev_name;
    std::string name = read_attribute("/sys/class/infiniband_verbs/" + uverbs + "/ibdev");
    return name.empty() ? std::string(ibv_get_device_name(context->device)) : name;
}

class verbs_registrar final : public registrar {
  public:
    verbs_registrar(ibv_pd* pd, unsigned access, bool dmabuf_only)
        : pd_(pd), access_(access), dmabuf_only_(dmabuf_only), hca_(device_name(pd->context)) {}

    int add(exporter& from, void* address, std::size_t bytes, registration& made) override {
        int refused = EOPNOTSUPP;
        if (from.can_export() && (access_ & ~dmabuf_access) == 0 && dmabuf_ != dmabuf::none) {
            const int error = add_dmabuf(from, address, bytes, made);
            if (error <= 0) {
                return error;
            }
            refused = error;
        }
        if (dmabuf_only_) {
            return fail(EOPNOTSUPP,
                        "registration by dma-buf only was asked for, but %s: use the device "
                        "source with an HCA that imports dma-bufs, or drop HCAMEM_REGISTER=dmabuf",
                        why_no_dmabuf(from, refused));
        }
        if (!from.pinnable()) {
            return fail(EFAULT,
                        "%s takes no dma-buf for this access (%s) and the kernel cannot pin huge "
                        "mappings: make the pool with mapping `pages` (HCAMEM_MAPPING=pages)",
                        hca_.c_str(), why_no_dmabuf(from, refused));
        }
        return add_user_pages(address, bytes, made);
    }

    int remove(const registration& made) override {
        const bool ours =
            made.mr != nullptr && made.path == HCAMEM_PATH_DMABUF && dmabuf_ == dmabuf::kernel_call;
        const int error = ours ? uverbs_dereg_mr(made.mr, driver_id_) : ibv_dereg_mr(made.mr);
        if (error != 0 && !is_gone(error)) {
            return fail(error, "deregistration of %s from %s: %s%s",
                        size_text(made.mr->length).c_str(), hca_.c_str(), strerrordesc_np(error),
                        error == EBUSY ? " (is a memory window bound to it?)" : "");
        }
        if (ours) {
            delete made.mr;
        }
        return 0;
    }

    [[nodiscard]] std::uint32_t access() const noexcept override { return access_; }

  private:
    enum class dmabuf { unknown, verb, kernel_call, none };

    [[nodiscard]] const char* why_no_dmabuf(const exporter& from, int refused) const noexcept {
        if (!from.can_export()) {
            return "the memory cannot be exported as a dma-buf";
        }
        if ((access_ & ~dmabuf_access) != 0) {
            return "these access flags cannot be given to a dma-buf";
        }
        return refused == ENOMSG ? "the HCA has no hcamem node" : "the HCA's driver imports none";
    }

    // 0, -errno with a message, or a positive errno: this HCA takes no dma-bufs.
    int add_dmabuf(exporter& from, void* address, std::size_t bytes, registration& made) {
        dmabuf_range range{-1, 0, address, bytes};
        const int descriptor = from.export_dmabuf(address, bytes, range.offset);
        if (descriptor < 0) {
            return descriptor;
        }
        const file closer(descriptor); // the MR holds the dma-buf itself
        range.descriptor = descriptor;
        int error = EOPNOTSUPP;
        if (dmabuf_ != dmabuf::kernel_call) {
            error = by_verb(range, made);
        }
        if (dmabuf_ != dmabuf::verb && is_unsupported(error)) {
            error = by_kernel_call(range, made);
        }
        if (error == 0) {
            made.path = HCAMEM_PATH_DMABUF;
            return 0;
        }
        if (dmabuf_ == dmabuf::unknown && (is_unsupported(error) || error == ENOMSG)) {
            dmabuf_ = dmabuf::none;
            return error;
        }
        return fail(error, "registration of a dma-buf of %s with %s: %s", size_text(bytes).c_str(),
                    hca_.c_str(), strerrordesc_np(error));
    }

    int by_verb(const dmabuf_range& range, registration& made) noexcept {
        errno = 0;
        ibv_mr* mr = ibv_reg_dmabuf_mr(pd_, range.offset, range.bytes,
                                       reinterpret_cast<std::uintptr_t>(range.address),
                                       range.descriptor, static_cast<int>(access_));
        if (mr == nullptr) {
            return errno != 0 ? errno : EOPNOTSUPP;
        }
        dmabuf_ = dmabuf::verb;
        made.mr = mr;
        made.lkey = mr->lkey;
        made.rkey = mr->rkey;
        return 0;
    }

    // ENOMSG: nobody can tell the number that the kernel wants in such a call.
    int by_kernel_call(const dmabuf_range& range, registration& made) {
        if (dmabuf_ == dmabuf::unknown) {
            node ours;
            if (open_node(hca_.c_str(), ours) != 0) {
                return ENOMSG;
            }
            driver_id_ = ours.info.driver_id;
        }
        auto mr = std::make_unique<ibv_mr>();
        const int error = uverbs_reg_dmabuf_mr(pd_, driver_id_, range, access_, mr.get());
        if (error != 0) {
            return error;
        }
        dmabuf_ = dmabuf::kernel_call;
        made.lkey = mr->lkey;
        made.rkey = mr->rkey;
        made.mr = mr.release();
        return 0;
    }

    int add_user_pages(void* address, std::size_t bytes, registration& made) noexcept {
        errno = 0;
        ibv_mr* mr = ibv_reg_mr(pd_, address, bytes, static_cast<int>(access_));
        if (mr == nullptr) {
            return user_pages_failed(errno != 0 ? errno : EIO, bytes);
        }
        made = {mr, mr->lkey, mr->rkey, HCAMEM_PATH_USER_PAGES};
        return 0;
    }

    [[nodiscard]] int user_pages_failed(int error, std::size_t bytes) const noexcept {
        rlimit limit{};
        getrlimit(RLIMIT_MEMLOCK, &limit);
        if ((error == ENOMEM || error == EAGAIN) && limit.rlim_cur != RLIM_INFINITY) {
            return fail(error,
                        "ibv_reg_mr of a slab of %s with %s: %s; pinned memory counts against "
                        "RLIMIT_MEMLOCK, which is %s: raise it (ulimit -l, "
                        "/etc/security/limits.conf, LimitMEMLOCK=) or give CAP_IPC_LOCK",
                        size_text(bytes).c_str(), hca_.c_str(), strerrordesc_np(error),
                        size_text(limit.rlim_cur).c_str());
        }
        return fail(error, "ibv_reg_mr of a slab of %s with %s for access 0x%x: %s%s",
                    size_text(bytes).c_str(), hca_.c_str(), access_, strerrordesc_np(error),
                    error == EFAULT ? "; the kernel cannot pin this mapping: make the pool with "
                                      "mapping `pages` (HCAMEM_MAPPING=pages)"
                                    : "");
    }

    ibv_pd* const pd_;
    const unsigned access_;
    const bool dmabuf_only_;
    const std::string hca_;
    dmabuf dmabuf_ = dmabuf::unknown;
    std::uint32_t driver_id_ = 0;
};

} // namespace

int make_verbs_registrar(ibv_pd* pd, int access, bool dmabuf_only,
                         std::unique_ptr<registrar>& made) {
    const auto flags = static_cast<unsigned>(access);
    if ((flags & remote_change) != 0 && (flags & IBV_ACCESS_LOCAL_WRITE) == 0) {
        return fail(EINVAL,
                    "access 0x%x: remote write and remote atomic need IBV_ACCESS_LOCAL_WRITE too",
                    flags);
    }
    if ((flags & IBV_ACCESS_ON_DEMAND) != 0) {
        return fail(EINVAL,
                    "access 0x%x: memory of a pool never moves, so there is no on-demand "
                    "paging of it",
                    flags);
    }
    made = std::make_unique<verbs_registrar>(pd, flags, dmabuf_only);
    return 0;
}

} // namespace hcamem::core
