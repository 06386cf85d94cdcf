// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Loads and stores that tell whether the address can be accessed.
#ifndef TESTS_FUZZ_GUARDED_HPP
#define TESTS_FUZZ_GUARDED_HPP

#include <cstdint>
#include <optional>

namespace fuzz {

/// Installs the handlers of SIGSEGV and SIGBUS, once per process image. Outside of the calls below
/// they are told to `crashed`, with the address, and then end the process as ever.
void install_guard(void (*crashed)(std::uintptr_t address));

/// The word at an aligned address; nothing if it cannot be read. Any thread.
std::optional<std::uint64_t> load(std::uintptr_t address);

/// False if the address cannot be written. Any thread.
[[nodiscard]] bool store(std::uintptr_t address, std::uint64_t value);

} // namespace fuzz

#endif
