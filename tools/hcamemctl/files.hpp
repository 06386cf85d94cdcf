// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Small files of the kernel, and descriptors with an owner.
#ifndef HCAMEMCTL_FILES_HPP
#define HCAMEMCTL_FILES_HPP

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ctl {

/// Owns a file descriptor; -1 owns nothing.
class unique_fd {
  public:
    unique_fd() = default;
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
    int fd_ = -1;
};

/// What reading a file gave: its whole text, or an errno and no text.
struct file_text {
    std::string text;
    int error = 0;
    [[nodiscard]] explicit operator bool() const { return error == 0; }
};

/// Reads a file, relative to the folder if one is given.
file_text read_file(const std::string& path, int folder = -1);

/// Writes with one write(); 0 or the errno.
int write_file(const std::string& path, std::string_view text);

/// Names in a folder without "." and "..", in no order; 0 or the errno. What
/// the caller does with a name may make others come and go.
int list_folder(const std::string& path, std::vector<std::string>& names, int folder = -1);

/// Calls with each line, without its newline.
void for_each_line(std::string_view text, const std::function<void(std::string_view)>& line);

/// Without white space at its end.
std::string_view trimmed(std::string_view text);

/// The whole text as a number; nothing if it is anything else.
std::optional<std::uint64_t> parse_number(std::string_view text, int base = 10);

/// A kernel file that holds one number.
std::optional<std::uint64_t> read_number(const std::string& path);

} // namespace ctl

#endif
