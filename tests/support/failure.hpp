// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_SUPPORT_FAILURE_HPP
#define TESTS_SUPPORT_FAILURE_HPP

#include <cerrno>
#include <string>
#include <system_error>

namespace support {

/// Throws what errno says, with the call that failed.
[[noreturn]] inline void fail(const std::string& what, int error = errno) {
    throw std::system_error(error, std::generic_category(), what);
}

/// Hands through the result of a system call; throws if it is negative.
template <class Result>
Result must(Result result, const char* what) {
    if (result < 0) {
        fail(what);
    }
    return result;
}

} // namespace support

#endif
