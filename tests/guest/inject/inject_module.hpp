// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The driver built with fault injection in place of the ordinary one, and its edges.
#ifndef TESTS_GUEST_INJECT_INJECT_MODULE_HPP
#define TESTS_GUEST_INJECT_INJECT_MODULE_HPP

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "support/guest.hpp"

constexpr const char* inject_parameters = "/sys/module/hcamem/parameters/";

/// What the second does while the first is held.
enum class Second {
    passes,  ///< it comes to its end
    may_wait ///< it may need something that the first has
};

/// Lets one thread come to an edge of the driver, "function:call", holds it there while
/// another runs, and then lets it go on. Both may throw; what they throw comes out here.
/// Whoever else comes to the edge meanwhile passes.
void collide(const std::string& edge, const std::function<void()>& first, Second how,
             const std::function<void()>& second);

/// Starts and ends the process that lets go of who is held: it needs an address space of
/// its own, since who is held may have locked the test's.
void start_edge_keeper();
void stop_edge_keeper();

/// A suite that runs on the driver with fault injection.
template <class Base>
class OnInjectModule : public Base {
  protected:
    static void SetUpTestSuite() {
        support::unload_module();
        support::must_shell("insmod " + support::environment("HCAMEM_INJECT_MODULE"));
        start_edge_keeper();
    }
    static void TearDownTestSuite() {
        stop_edge_keeper();
        support::unload_module();
        support::must_shell("insmod " + support::environment("HCAMEM_MODULE"));
    }
};

#endif
