// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Small files of the kernel, and descriptors with an owner.
#ifndef HCAMEMCTL_FILES_HPP
#define HCAMEMCTL_FILES_HPP

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ctl {

/// Owns a file descriptor; -1 owns nothing.
class unique_fd {
  public:
    explicit unique_fd(int fd) : fd_(fd) {}
    unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    unique_fd& operator=(unique_fd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    unique_fd(const unique_fd&) = delete;
    unique_fd& operator=(const unique_fd&) = delete;
    ~unique_fd() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }

    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_;
};

/// What reading a file gave: its whole text, or an errno and no text.
struct file_text {
    std::string text;
    int error = 0;
};
file_text read_file(const std::string& path);

/// Names in a folder, in no order; none of a folder that cannot be read or goes meanwhile.
std::vector<std::string> names_in(const std::string& folder);

/// Without their newlines; they are parts of the text.
std::vector<std::string_view> lines_of(std::string_view text);

/// Value of the first line "NAME:   value", "" if there is none.
std::string_view field(std::string_view text, std::string_view name);

/// The whole text, but white space around it, as a number; nothing if it is anything else.
std::optional<std::uint64_t> parse_number(std::string_view text, int base = 10);

} // namespace ctl

#endif
