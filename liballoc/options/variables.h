// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The one table of options: name, meaning and how a value is read and written.
#ifndef HCAMEM_OPTIONS_VARIABLES_H
#define HCAMEM_OPTIONS_VARIABLES_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <hcamem.h>

namespace hcamem::core {

struct variable {
    const char* name;
    const char* meaning;
    enum class kind : std::uint8_t { word, flag, bytes, number, text } type;
    std::uint32_t hcamem_options::*word = nullptr;  // kind::word: index into values
    std::uint64_t hcamem_options::*bytes = nullptr; // kind::bytes
    std::uint32_t flag = 0;                         // kind::flag: set for the second value
    std::array<const char*, 3> values{};            // of words and flags
};

/// In the order in which hcamem_options_describe() lists them.
std::span<const variable> variables() noexcept;

/// Sets the field that the variable is about; false if the text makes no sense.
bool parse_value(const variable& which, const char* text, hcamem_options& options) noexcept;

/// The field's value as text, as parse_value() reads it.
void print_value(const variable& which, const hcamem_options& options, char* text,
                 std::size_t size) noexcept;

} // namespace hcamem::core

#endif
