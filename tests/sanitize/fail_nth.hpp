// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The kernel's own fault injection, for the calls of one thread.
#ifndef TESTS_SANITIZE_FAIL_NTH_HPP
#define TESTS_SANITIZE_FAIL_NTH_HPP

#include "support/unique_fd.hpp"

namespace sanitize {

/// Makes the n-th allocation or copy from or to user space that the kernel does for the calling
/// thread fail: Documentation/fault-injection/fault-injection.rst, "/proc/<pid>/fail-nth".
class FailNth {
  public:
    /// Sets up the kernel's fault injection so that every kind of allocation counts. Throws on a
    /// kernel that has none.
    FailNth();

    void arm(unsigned n) const;
    /// Whether the failure happened since arm(). Nothing fails any more after this.
    [[nodiscard]] bool disarm() const;

  private:
    support::UniqueFd control_;
};

} // namespace sanitize

#endif
