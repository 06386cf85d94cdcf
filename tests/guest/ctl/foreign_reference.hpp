// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_GUEST_CTL_FOREIGN_REFERENCE_HPP
#define TESTS_GUEST_CTL_FOREIGN_REFERENCE_HPP

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "support/failure.hpp"
#include "support/unique_fd.hpp"

/// References on pages that vmsplice() takes into a pipe, until its end.
class ForeignReference {
  public:
    ForeignReference() {
        int ends[2];
        support::must(pipe2(ends, O_CLOEXEC), "pipe");
        out_ = support::UniqueFd(ends[0]);
        in_ = support::UniqueFd(ends[1]);
    }

    /// On the page that holds the byte.
    void take(void* byte) const {
        const iovec part{byte, 1};
        support::must(vmsplice(in_.get(), &part, 1, 0), "vmsplice");
    }

  private:
    support::UniqueFd out_;
    support::UniqueFd in_;
};

#endif
