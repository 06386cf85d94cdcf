// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_ERROR_HPP
#define HCAMEM_ERROR_HPP

#include <string>
#include <system_error>

#include <hcamem.h>

namespace hcamem {

/// A call failed for another reason than exhaustion. code() holds the errno in
/// std::generic_category(), what() the library's message: limit, value, remedy.
class error : public std::system_error {
  public:
    /// From the result of a call of the C interface (-errno or errno), with the
    /// calling thread's last message.
    explicit error(int result)
        : std::system_error(result < 0 ? -result : result, std::generic_category(),
                            hcamem_last_message()) {}

    error(int error_number, const std::string& message)
        : std::system_error(error_number, std::generic_category(), message) {}
};

} // namespace hcamem

#endif
