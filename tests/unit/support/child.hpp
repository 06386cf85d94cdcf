// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Child processes made in the ways an application makes them.
#ifndef TESTS_UNIT_SUPPORT_CHILD_HPP
#define TESTS_UNIT_SUPPORT_CHILD_HPP

#include <functional>
#include <ostream>

namespace unit {

enum class birth {
    fork,  // with the C library's fork handlers
    clone, // the system call: nothing in user space knows
};
std::ostream& operator<<(std::ostream& out, birth how);

/// Runs it in a child and returns its exit status; 128 + signal if it was killed, which
/// also happens to one that hangs.
int run_in_child(birth how, const std::function<int()>& body);

} // namespace unit

#endif
