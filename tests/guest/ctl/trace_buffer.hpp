// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_GUEST_CTL_TRACE_BUFFER_HPP
#define TESTS_GUEST_CTL_TRACE_BUFFER_HPP

#include <map>
#include <string>
#include <vector>

/// One event as tracefs prints it: its fields, and "task" for who did it.
using TraceEvent = std::map<std::string, std::string>;

/// A trace buffer of its own that records every event of hcamem until its end.
class TraceBuffer {
  public:
    TraceBuffer();
    TraceBuffer(const TraceBuffer&) = delete;
    TraceBuffer& operator=(const TraceBuffer&) = delete;
    ~TraceBuffer();

    /// Recorded so far, of one kind such as "hcamem_export", oldest first.
    [[nodiscard]] std::vector<TraceEvent> events(const std::string& name) const;

  private:
    std::string folder_;
};

#endif
