// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_EXHAUSTED_HPP
#define HCAMEM_EXHAUSTED_HPP

#include <cerrno>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>

#include <hcamem.h>

namespace hcamem {

/// No block could be had: the pool is at its maximum, the shared heap is full, the kernel refused
/// more memory, or the wait for a block timed out. Derives from std::bad_alloc only: with
/// std::system_error as a second base `catch (std::exception&)` would be ambiguous and miss it.
class exhausted : public std::bad_alloc {
  public:
    explicit exhausted(int error) noexcept : error_(error < 0 ? -error : error) {
        std::snprintf(message_, sizeof message_, "%s", hcamem_last_message());
    }

    exhausted(int error, const std::string& message) noexcept : error_(error) {
        std::snprintf(message_, sizeof message_, "%s", message.c_str());
    }

    /// Whether a failed allocation with this errno counts as exhaustion.
    [[nodiscard]] static bool is(int error) noexcept {
        return error == ENOMEM || error == EAGAIN || error == EDQUOT || error == ETIMEDOUT;
    }

    /// Limit, value and remedy.
    [[nodiscard]] const char* what() const noexcept override { return message_; }

    /// ENOMEM, EAGAIN, EDQUOT or ETIMEDOUT, as documented at hcamem_alloc().
    [[nodiscard]] std::error_code code() const noexcept {
        return {error_, std::generic_category()};
    }

  private:
    int error_;
    char message_[256]; // no std::string: copying this exception must not throw
};

} // namespace hcamem

#endif
