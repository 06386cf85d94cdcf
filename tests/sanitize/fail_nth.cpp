// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "fail_nth.hpp"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <string>

#include "support/failure.hpp"
#include "support/guest.hpp"

namespace sanitize {

FailNth::FailNth()
    : control_(support::must(open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC),
                             "/proc/self/fail-nth, which the sanitizing kernel has")) {
    const std::string debugfs = "/sys/kernel/debug/";
    support::write_text(debugfs + "failslab/ignore-gfp-wait", "N");
    support::write_text(debugfs + "fail_page_alloc/ignore-gfp-wait", "N");
    support::write_text(debugfs + "fail_page_alloc/ignore-gfp-highmem", "N");
    support::write_text(debugfs + "fail_page_alloc/min-order", "0");
    for (const char* kind : {"failslab", "fail_page_alloc", "fail_usercopy"}) {
        // A stack trace for each would drown what is to be found in the log.
        support::write_text(debugfs + kind + "/verbose", "0");
    }
}

void FailNth::arm(unsigned n) const {
    const std::string number = std::to_string(n);
    support::must(pwrite(control_.get(), number.data(), number.size(), 0), "arm fail-nth");
}

bool FailNth::disarm() const {
    // The copy of this answer counts too: EFAULT means that it was the one to fail.
    std::array<char, 16> left{};
    const ssize_t got = pread(control_.get(), left.data(), left.size() - 1, 0);
    const bool own = got < 0 && errno == EFAULT;
    if (got < 0 && !own) {
        support::fail("read fail-nth");
    }
    const bool happened = !own && left[0] == '0';
    // The copy of this one as well; failed, it has disarmed.
    if (pwrite(control_.get(), "0", 1, 0) < 0 && errno != EFAULT) {
        support::fail("disarm fail-nth");
    }
    return happened;
}

} // namespace sanitize
