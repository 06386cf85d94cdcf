// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_OS_FILE_H
#define HCAMEM_OS_FILE_H

#include <cerrno>
#include <cstddef>
#include <utility>

#include <unistd.h>

namespace hcamem::core {

/// Owns a file descriptor.
class file {
  public:
    file() noexcept = default;
    explicit file(int descriptor) noexcept : descriptor_(descriptor) {}
    file(file&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    file& operator=(file&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    file(const file&) = delete;
    file& operator=(const file&) = delete;
    ~file() {
        if (descriptor_ >= 0) {
            const int error = errno;
            close(descriptor_);
            errno = error;
        }
    }

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    explicit operator bool() const noexcept { return descriptor_ >= 0; }

  private:
    int descriptor_ = -1;
};

} // namespace hcamem::core

#endif
