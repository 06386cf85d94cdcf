// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Command lines: one table of options gives both the parsing (getopt_long) and the help text.
#ifndef SAMPLES_COMMON_CLI_HPP
#define SAMPLES_COMMON_CLI_HPP

#include "exit_codes.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace samples {

/// A whole number in decimal or 0x form, with nothing before or after it, in [low, high].
/// Throws failure(usage) that names `option`, the text and the range.
[[nodiscard]] std::uint64_t parse_number(std::string_view option, std::string_view text,
                                         std::uint64_t low, std::uint64_t high);

/// parse_number with an optional k, m or g behind the number (times 1024, 1024^2, 1024^3).
[[nodiscard]] std::uint64_t parse_size(std::string_view option, std::string_view text,
                                       std::uint64_t low, std::uint64_t high);

class command_line {
  public:
    /// Gets "--long-name" and the value; may throw failure(usage).
    using handler = std::function<void(std::string_view option, std::string_view value)>;

    /// `usages`: what may stand behind the program's name, one way of calling it each.
    command_line(std::string program, std::vector<std::string> usages, std::string about);

    /// An option without a value. `short_name` 0: it has a long name only.
    void flag(char short_name, const char* long_name, std::string help, bool& target);

    /// An option with a value.
    void value(char short_name, const char* long_name, const char* value_name, std::string help,
               handler handle);

    void text(char short_name, const char* long_name, const char* value_name, std::string help,
              std::string& target);

    template <std::integral Number>
    void number(char short_name, const char* long_name, const char* value_name, std::string help,
                Number& target, std::uint64_t low, std::uint64_t high) {
        value(short_name, long_name, value_name, std::move(help),
              [&target, low, high](std::string_view option, std::string_view text) {
                  target = static_cast<Number>(parse_number(option, text, low, high));
              });
    }

    void size(char short_name, const char* long_name, const char* value_name, std::string help,
              std::uint64_t& target, std::uint64_t low, std::uint64_t high);

    /// Parses the arguments. After --help was printed to stdout it returns false: end with 0.
    /// `arguments` gets what is not an option, at most `max_arguments` of them.
    [[nodiscard]] bool parse(int argc, char** argv, std::vector<std::string>& arguments,
                             std::size_t max_arguments);

  private:
    struct option_entry {
        char short_name;
        const char* long_name;
        const char* value_name; // nullptr: a flag
        std::string help;
        handler handle;
    };

    [[nodiscard]] std::string help_text() const;
    [[nodiscard]] failure usage_failure(const std::string& line) const;
    [[nodiscard]] const option_entry& entry_of(int getopt_result) const;

    std::string program_;
    std::vector<std::string> usages_;
    std::string about_;
    std::vector<option_entry> options_;
};

} // namespace samples

#endif
