// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What candidates share: a mapping, and the two ways to register it.
#ifndef BENCH_GUEST_MAPPED_HPP
#define BENCH_GUEST_MAPPED_HPP

#include <cstddef>
#include <cstdint>

#include <infiniband/verbs.h>

#include "candidates/candidate.hpp"
#include "support/unique_fd.hpp"

namespace bench {

/// mmap() or an exception.
std::byte* map(std::size_t bytes, int flags, int descriptor = -1, std::int64_t offset = 0);

/// Memory that ibv_reg_mr() pins by its addresses.
class pinned_candidate : public candidate {
  public:
    pinned_candidate(std::string name, const support::Pd& pd)
        : candidate(std::move(name)), pd_(pd) {}

    keys enroll() override;
    void withdraw() override;
    void release() override;

  protected:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t mapped_ = 0; // whole pages of the kind

  private:
    const support::Pd& pd_;
    ibv_mr* mr_ = nullptr;
};

/// Memory that is registered as a dma-buf, by the uverbs call that the library makes too.
class dmabuf_candidate : public candidate {
  public:
    dmabuf_candidate(std::string name, const support::Pd& pd, std::uint32_t driver_id)
        : candidate(std::move(name)), pd_(pd), driver_id_(driver_id) {}

    keys enroll() override;
    void withdraw() override;
    void release() override;

  protected:
    /// The dma-buf of the buffer, and where in it the buffer begins.
    virtual support::UniqueFd dmabuf(std::uint64_t& offset) = 0;

    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;

  private:
    const support::Pd& pd_;
    std::uint32_t driver_id_;
    ibv_mr mr_{};
};

} // namespace bench

#endif
