// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the tests of calls that pin a process's pages share.
#ifndef TESTS_GUEST_DRIVER_PINNING_HPP
#define TESTS_GUEST_DRIVER_PINNING_HPP

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "kinds.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"

/// Calls that pin pages work on `pages` mappings, and get EFAULT on `huge` ones where the kernel
/// can tell.
class PinningModes : public MappingModes {
  protected:
    /// Whether a page-pinning call must work, must fail with EFAULT, or may do either.
    static bool must_work() {
        return GetParam() == HCAMEM_MAPPING_PAGES ||
               (support::Node().info().capabilities & HCAMEM_CAP_HUGE_PINNABLE) != 0;
    }
    /// 6.1 cannot tell a huge mapping from transparent huge pages in its fast path, so
    /// that it pins what is mapped already; what it does must be right then.
    static bool must_fail() { return !must_work() && support::kernel() != "6.1"; }

    /// Checks the result of a call that should have moved `expected` bytes.
    static void expect_moved(ssize_t moved, std::size_t expected) {
        const int error = errno;
        if (must_work()) {
            EXPECT_EQ(moved, static_cast<ssize_t>(expected)) << std::strerror(error);
        } else if (must_fail()) {
            EXPECT_EQ(moved, -1);
            EXPECT_EQ(error, EFAULT);
        } else {
            EXPECT_TRUE(moved == static_cast<ssize_t>(expected) || (moved == -1 && error == EFAULT))
                << moved << ": " << std::strerror(error);
        }
    }
};

/// A loop device on a file in memory: direct I/O to it pins the user's pages.
class BlockDevice {
  public:
    BlockDevice() {
        support::must_shell("modprobe loop");
        support::must_shell("truncate -s 8M " + file_);
        support::must_shell("losetup --find --show --sector-size 512 " + file_ + " > " + file_ +
                            ".name");
        path_ = support::read_text(file_ + ".name");
        path_.erase(path_.find_last_not_of('\n') + 1);
    }
    BlockDevice(const BlockDevice&) = delete;
    BlockDevice& operator=(const BlockDevice&) = delete;
    ~BlockDevice() {
        support::shell("losetup -d " + path_ + "; rm -f " + file_ + " " + file_ + ".name");
    }
    [[nodiscard]] support::UniqueFd open_direct() const {
        return support::UniqueFd(
            support::must(open(path_.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC), path_.c_str()));
    }

  private:
    std::string file_ = "/dev/shm/hcamem-block";
    std::string path_;
};

#endif
