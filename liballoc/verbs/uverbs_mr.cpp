// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "verbs/uverbs_mr.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>

namespace hcamem::core {
namespace {

/// A request of drivers/infiniband/core/uverbs_ioctl.c: a header and its attributes.
class request {
  public:
    request(std::uint16_t object, std::uint16_t method, std::uint32_t driver_id) noexcept {
        body_.header.object_id = object;
        body_.header.method_id = method;
        body_.header.driver_id = driver_id;
    }

    /// An object by its handle; for a new object the kernel writes the handle.
    std::size_t add_object(std::uint16_t id, std::uint32_t handle = 0) noexcept {
        return add(id, 0, handle);
    }
    /// Eight bytes or less are passed in place.
    std::size_t add_value(std::uint16_t id, std::uint16_t bytes, std::uint64_t value) noexcept {
        return add(id, bytes, value);
    }
    std::size_t add_output(std::uint16_t id, std::uint32_t* value) noexcept {
        return add(id, sizeof *value, reinterpret_cast<std::uintptr_t>(value));
    }

    int execute(int descriptor) noexcept {
        body_.header.length = static_cast<std::uint16_t>(
            sizeof body_.header + body_.header.num_attrs * sizeof body_.attributes[0]);
        return ioctl(descriptor, RDMA_VERBS_IOCTL, &body_) == 0 ? 0 : errno;
    }

    [[nodiscard]] std::uint32_t handle(std::size_t attribute) const noexcept {
        return static_cast<std::uint32_t>(body_.attributes[attribute].data);
    }

  private:
    std::size_t add(std::uint16_t id, std::uint16_t bytes, std::uint64_t data) noexcept {
        const std::size_t index = body_.header.num_attrs++;
        ib_uverbs_attr& attribute = body_.attributes[index];
        attribute.attr_id = id;
        attribute.len = bytes;
        attribute.flags = UVERBS_ATTR_F_MANDATORY;
        attribute.data = data;
        return index;
    }

    // The kernel's header ends in an array without a length; here it has one.
    struct header {
        std::uint16_t length;
        std::uint16_t object_id;
        std::uint16_t method_id;
        std::uint16_t num_attrs;
        std::uint64_t reserved1;
        std::uint32_t driver_id;
        std::uint32_t reserved2;
    };
    static_assert(sizeof(header) == sizeof(ib_uverbs_ioctl_hdr));

    struct {
        struct header header;
        std::array<ib_uverbs_attr, 9> attributes;
    } body_{};
};

} // namespace

int uverbs_reg_dmabuf_mr(ibv_pd* pd, std::uint32_t driver_id, const dmabuf_range& range,
                         std::uint32_t access, ibv_mr* mr) noexcept {
    std::uint32_t lkey = 0;
    std::uint32_t rkey = 0;
    request call(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, driver_id);
    const std::size_t object = call.add_object(UVERBS_ATTR_REG_DMABUF_MR_HANDLE);
    call.add_object(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd->handle);
    call.add_value(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, sizeof(std::uint64_t), range.offset);
    call.add_value(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, sizeof(std::uint64_t), range.bytes);
    call.add_value(UVERBS_ATTR_REG_DMABUF_MR_IOVA, sizeof(std::uint64_t),
                   reinterpret_cast<std::uintptr_t>(range.address));
    // Plain input, not a descriptor attribute: the kernel reads it with uverbs_get_raw_fd().
    call.add_value(UVERBS_ATTR_REG_DMABUF_MR_FD, sizeof(std::int32_t),
                   static_cast<std::uint32_t>(range.descriptor));
    call.add_value(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, sizeof(std::uint32_t), access);
    call.add_output(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &lkey);
    call.add_output(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &rkey);
    const int error = call.execute(pd->context->cmd_fd);
    if (error != 0) {
        return error;
    }
    *mr = {};
    mr->context = pd->context;
    mr->pd = pd;
    mr->addr = range.address;
    mr->length = range.bytes;
    mr->handle = call.handle(object);
    mr->lkey = lkey;
    mr->rkey = rkey;
    return 0;
}

int uverbs_dereg_mr(const ibv_mr* mr, std::uint32_t driver_id) noexcept {
    request call(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, driver_id);
    call.add_object(UVERBS_ATTR_DESTROY_MR_HANDLE, mr->handle);
    return call.execute(mr->context->cmd_fd);
}

} // namespace hcamem::core
