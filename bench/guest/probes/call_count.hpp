// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_GUEST_CALL_COUNT_HPP
#define BENCH_GUEST_CALL_COUNT_HPP

#include <cstdint>
#include <string>

#include "support/unique_fd.hpp"

namespace bench {

/// How often this thread enters a function of the kernel, by a breakpoint of the processor: it
/// also takes functions written in assembly, which kprobes do not. Throws if the kernel has no
/// such function.
class call_count {
  public:
    explicit call_count(const std::string& function);
    [[nodiscard]] std::uint64_t value() const;

  private:
    support::UniqueFd event_;
};

} // namespace bench

#endif
