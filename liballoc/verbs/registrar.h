// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_VERBS_REGISTRAR_H
#define HCAMEM_VERBS_REGISTRAR_H

#include <cstddef>
#include <cstdint>
#include <memory>

#include <hcamem.h>

struct ibv_mr;
struct ibv_pd;

namespace hcamem::core {

class exporter;

/// One slab's registration in one protection domain.
struct registration {
    ibv_mr* mr = nullptr;
    std::uint32_t lkey = 0;
    std::uint32_t rkey = 0;
    std::uint32_t path = HCAMEM_PATH_NONE;
};

/// Registers slabs with one protection domain for one set of access flags. The pool
/// calls it under its growth lock, so one call at a time.
class registrar {
  public:
    registrar() = default;
    registrar(const registrar&) = delete;
    registrar& operator=(const registrar&) = delete;
    registrar(registrar&&) = delete;
    registrar& operator=(registrar&&) = delete;
    virtual ~registrar() = default;

    /// 0, or -errno with a message and nothing registered.
    virtual int add(exporter& from, void* address, std::size_t bytes, registration& made) = 0;

    /// 0 also if the HCA is gone; -errno with a message: it is still registered.
    virtual int remove(const registration& made) = 0;

    [[nodiscard]] virtual std::uint32_t access() const noexcept = 0;
};

/// For a protection domain of libibverbs. 0, or -EINVAL with a message.
int make_verbs_registrar(ibv_pd* pd, int access, bool dmabuf_only,
                         std::unique_ptr<registrar>& made);

} // namespace hcamem::core

#endif
