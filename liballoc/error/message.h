// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// How the library reports: one message per thread for the last failure, warnings
// on standard error, and the end of the process for misuse.
#ifndef HCAMEM_ERROR_MESSAGE_H
#define HCAMEM_ERROR_MESSAGE_H

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hcamem::core {

/// Sets the calling thread's last message and returns -error, so that a failing
/// function can say `return fail(ENOMEM, "...")`. errno is left alone.
[[gnu::format(printf, 2, 3)]] int fail(int error, const char* format, ...) noexcept;

/// The same with a text that lives for ever. Takes no lock and no memory, so it
/// may be used in a child whose parent was inside malloc() when it forked.
int fail_static(int error, const char* text) noexcept;

const char* last_message() noexcept;

/// A warning on standard error, once per `said`, unless HCAMEM_QUIET=1.
[[gnu::format(printf, 2, 3)]] void warn_once(std::atomic<bool>& said, const char* format,
                                             ...) noexcept;

/// Whether HCAMEM_QUIET=1.
bool quiet() noexcept;

/// The caller broke the contract: sets the message, then aborts, or returns -EINVAL
/// where the pool was made with HCAMEM_OPT_MISUSE_ERROR.
[[gnu::format(printf, 2, 3)]] int misuse(bool is_error, const char* format, ...) noexcept;

/// The library cannot go on without handing out what is not its to give.
[[noreturn]] void fatal(const char* text) noexcept;

/// A size for people: "64 MiB", "4097 bytes", "118.3 MiB".
class size_text {
  public:
    explicit size_text(std::uint64_t bytes) noexcept;
    [[nodiscard]] const char* c_str() const noexcept { return text_; }

  private:
    char text_[32];
};

} // namespace hcamem::core

#endif
