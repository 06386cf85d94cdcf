// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Registration of a dma-buf by the kernel's own call. The verb ibv_reg_dmabuf_mr()
// needs a function in the HCA's provider library, which rdma-core's soft-RoCE
// provider lacks although the call has no provider-specific part.
#ifndef HCAMEM_VERBS_UVERBS_MR_H
#define HCAMEM_VERBS_UVERBS_MR_H

#include <cstddef>
#include <cstdint>

struct ibv_mr;
struct ibv_pd;

namespace hcamem::core {

struct dmabuf_range {
    int descriptor;
    std::uint64_t offset; // in the dma-buf
    void* address;        // where the HCA's users name it: the iova
    std::size_t bytes;
};

/// UVERBS_METHOD_REG_DMABUF_MR; driver_id is the HCA's (enum rdma_driver_id). Fills *mr,
/// which no call of libibverbs may be given. 0 or an errno.
int uverbs_reg_dmabuf_mr(ibv_pd* pd, std::uint32_t driver_id, const dmabuf_range& range,
                         std::uint32_t access, ibv_mr* mr) noexcept;

/// UVERBS_METHOD_MR_DESTROY for such an MR. 0 or an errno.
int uverbs_dereg_mr(const ibv_mr* mr, std::uint32_t driver_id) noexcept;

} // namespace hcamem::core

#endif
