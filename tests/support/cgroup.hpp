// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_SUPPORT_CGROUP_HPP
#define TESTS_SUPPORT_CGROUP_HPP

#include <cstdint>
#include <string>

namespace support {

/// A memory cgroup (version 2) of its own; removed at the end, when it must be empty.
class MemoryCgroup {
  public:
    /// max_bytes 0 means no limit.
    explicit MemoryCgroup(std::uint64_t max_bytes = 0);
    MemoryCgroup(const MemoryCgroup&) = delete;
    MemoryCgroup& operator=(const MemoryCgroup&) = delete;
    ~MemoryCgroup();

    /// Sets memory.high, which slows down instead of failing.
    void set_high(std::uint64_t bytes) const;
    /// Moves the calling process into it.
    void enter() const;
    /// Bytes charged now.
    [[nodiscard]] std::uint64_t current() const;
    /// A counter of memory.events, such as "oom_kill".
    [[nodiscard]] std::uint64_t event(const std::string& name) const;

  private:
    std::string path_;
};

} // namespace support

#endif
