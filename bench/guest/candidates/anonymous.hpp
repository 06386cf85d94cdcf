// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Memory of the process that ibv_reg_mr() pins.
#ifndef BENCH_GUEST_ANONYMOUS_HPP
#define BENCH_GUEST_ANONYMOUS_HPP

#include "candidates/mapped.hpp"

namespace bench {

/// What malloc() does for a large block: fresh pages of 4 KiB.
class malloc_candidate final : public pinned_candidate {
  public:
    explicit malloc_candidate(const support::Pd& pd);
    std::byte* obtain(std::size_t bytes) override;
};

/// The same with transparent huge pages, aligned so that they can be used.
class thp_candidate final : public pinned_candidate {
  public:
    explicit thp_candidate(const support::Pd& pd);
    [[nodiscard]] std::string unfit(std::size_t bytes) const override;
    std::byte* obtain(std::size_t bytes) override;
};

/// Huge pages that the administrator set aside.
class hugetlb_candidate final : public pinned_candidate {
  public:
    explicit hugetlb_candidate(const support::Pd& pd);
    void prepare(std::size_t bytes) override;
    void finish() override;
    std::byte* obtain(std::size_t bytes) override;
};

} // namespace bench

#endif
