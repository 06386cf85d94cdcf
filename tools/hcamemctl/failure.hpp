// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// How the program ends: exit codes, and the error that carries one.
#ifndef HCAMEMCTL_FAILURE_HPP
#define HCAMEMCTL_FAILURE_HPP

#include <stdexcept>
#include <string>

namespace ctl {

/// Documented in hcamemctl(8); scripts rely on the numbers.
enum class exit_code {
    success = 0,
    failed = 1,     ///< could not be done
    usage = 2,      ///< wrong arguments
    absent = 3,     ///< the module, node or user asked for does not exist
    incomplete = 4, ///< done, but a part of the answer is missing
};

/// Ends the program with a message on stderr.
class failure : public std::runtime_error {
  public:
    failure(exit_code status, const std::string& message)
        : std::runtime_error(message), status_(status) {}
    [[nodiscard]] exit_code status() const { return status_; }

  private:
    exit_code status_;
};

} // namespace ctl

#endif
