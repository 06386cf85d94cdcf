// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A way to get memory that an HCA can use: what users could take instead of each other.
#ifndef BENCH_GUEST_CANDIDATE_HPP
#define BENCH_GUEST_CANDIDATE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/rdma.hpp"

namespace bench {

struct keys {
    std::uint32_t lkey = 0;
    std::uint32_t rkey = 0;
};

/// Holds one buffer at a time: obtain(), enroll(), withdraw(), release(), in this order. Each
/// throws std::system_error.
class candidate {
  public:
    explicit candidate(std::string name) : name_(std::move(name)) {}
    candidate(const candidate&) = delete;
    candidate& operator=(const candidate&) = delete;
    candidate(candidate&&) = delete;
    candidate& operator=(candidate&&) = delete;
    virtual ~candidate() = default;

    [[nodiscard]] const std::string& name() const { return name_; }

    /// Why it has no buffers of this size; empty: it has.
    [[nodiscard]] virtual std::string unfit(std::size_t /*bytes*/) const { return {}; }
    /// What an administrator, or a program's start, does once: not measured.
    virtual void prepare(std::size_t /*bytes*/) {}
    /// Undoes prepare().
    virtual void finish() {}

    /// Mapped memory, which need not be present yet.
    virtual std::byte* obtain(std::size_t bytes) = 0;
    /// Registers what obtain() gave.
    virtual keys enroll() = 0;
    virtual void withdraw() = 0;
    virtual void release() = 0;

  private:
    std::string name_;
};

using candidates = std::vector<std::unique_ptr<candidate>>;

/// All of them, peers first. The protection domain is on the HCA named `hca`.
candidates make_candidates(const support::Pd& pd, const std::string& hca);

} // namespace bench

#endif
