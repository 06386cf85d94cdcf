// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_GUEST_STABILITY_HOG_HPP
#define TESTS_GUEST_STABILITY_HOG_HPP

#include <cstdint>
#include <memory>

#include "support/child.hpp"

/// A process that takes ordinary memory, RAM and swap, until nearly nothing is left, and
/// is the OOM killer's first choice.
class Hog {
  public:
    /// Takes memory until available memory and free swap together are at most `leave` bytes.
    explicit Hog(std::uint64_t leave);
    /// Waits until it has what it wants; false if it was killed on the way.
    bool is_full();
    /// Has it give some memory back and take it again; false if it was killed.
    bool churn();
    /// Ends it; true if it was alive until now, false if the OOM killer took it.
    bool end();

  private:
    bool done();

    support::Child child_;
};

/// One that is full. The OOM killer may take some on the way; throws if it takes all of ten.
std::unique_ptr<Hog> full_hog(std::uint64_t leave);

#endif
