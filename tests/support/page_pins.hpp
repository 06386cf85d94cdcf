// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Watches the kernel's get_user_pages() and pin_user_pages() families: who asked for which pages.
#ifndef TESTS_SUPPORT_PAGE_PINS_HPP
#define TESTS_SUPPORT_PAGE_PINS_HPP

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace support {

/// User addresses [begin, end) of one process.
struct AddressRange {
    std::uint64_t begin;
    std::uint64_t end;
};

/// One call: the function, the thread that made it, and the pages it asked for.
struct PinCall {
    std::string function;
    pid_t thread;
    AddressRange pages;
};

/// Probes at the entry of every function of the two families that this kernel has, the public
/// ones and the inner ones that do the work; so one pin is seen several times, and a pin by any
/// way in is seen at least once. Needs root, tracefs at /sys/kernel/tracing, and x86-64.
class PagePins {
  public:
    /// Installs the probes and starts. Throws if one cannot be installed, if the kernel has a
    /// function of these families that this class does not know, or has none of the inner ones.
    /// `buffer_kilobytes`: room for events on each processor; one takes some 60 bytes.
    explicit PagePins(unsigned buffer_kilobytes = 4096);
    PagePins(const PagePins&) = delete;
    PagePins& operator=(const PagePins&) = delete;
    /// Takes the probes away.
    ~PagePins();

    /// The functions that are probed.
    [[nodiscard]] const std::vector<std::string>& functions() const { return functions_; }

    /// Forgets what was seen.
    void clear();

    /// All calls since the start or the last clear(). Throws if the kernel lost any of them, so
    /// that "none" means none.
    [[nodiscard]] std::vector<PinCall> calls() const;

  private:
    void install(unsigned buffer_kilobytes);
    void remove() noexcept;
    void check_nothing_lost() const;
    [[nodiscard]] std::string in_instance(const std::string& file) const;

    std::string group_;
    std::string instance_;
    std::vector<std::string> functions_;
};

/// The calls that asked for a page which one of the ranges lies in.
[[nodiscard]] std::vector<PinCall> touching(std::span<const PinCall> calls,
                                            std::span<const AddressRange> ranges);

/// How often each function was called.
[[nodiscard]] std::map<std::string, std::uint64_t> by_function(std::span<const PinCall> calls);

} // namespace support

#endif
