// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_SUPPORT_UNIQUE_FD_HPP
#define TESTS_SUPPORT_UNIQUE_FD_HPP

#include <unistd.h>

#include <utility>

namespace support {

/// Owns one file descriptor; -1 owns nothing.
class UniqueFd {
  public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;
    ~UniqueFd() { reset(); }

    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] bool valid() const { return fd_ >= 0; }
    void reset() {
        if (fd_ >= 0) {
            close(std::exchange(fd_, -1));
        }
    }

  private:
    int fd_ = -1;
};

} // namespace support

#endif
