// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_SUPPORT_HCA_HPP
#define TESTS_SUPPORT_HCA_HPP

#include <string>

namespace support {

/// A soft-RoCE HCA that can be taken away and brought back; brings it back at the end.
class Hca {
  public:
    explicit Hca(std::string name);
    Hca(const Hca&) = delete;
    Hca& operator=(const Hca&) = delete;
    ~Hca();

    void remove();
    /// Comes back when its node and its GIDs are there.
    void add();

  private:
    std::string name_;
    std::string netdev_;
    bool present_ = true;
};

} // namespace support

#endif
