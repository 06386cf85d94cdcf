// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cli.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <getopt.h>

namespace samples {
namespace {

// Values of getopt_long() for options without a short name; above every character.
constexpr int first_long_only = 0x100;
constexpr int help_option = 0x1000;
constexpr std::size_t help_column = 26;

failure bad_value(std::string_view option, std::string_view text, std::uint64_t low,
                  std::uint64_t high) {
    std::string line(option);
    line.append(" ").append(text.empty() ? std::string_view("''") : text);
    line.append(": must be a whole number from ").append(std::to_string(low));
    line.append(" to ").append(std::to_string(high));
    return {exit_code::usage, line};
}

// True if all of `text` is a number that fits.
bool read_number(std::string_view text, std::uint64_t& number) {
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        base = 16;
        text.remove_prefix(2);
    }
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number, base);
    return error == std::errc() && stop == end;
}

unsigned shift_of_unit(char unit) {
    switch (unit) {
    case 'k':
    case 'K':
        return 10;
    case 'm':
    case 'M':
        return 20;
    case 'g':
    case 'G':
        return 30;
    default:
        return 0;
    }
}

} // namespace

std::uint64_t parse_number(std::string_view option, std::string_view text, std::uint64_t low,
                           std::uint64_t high) {
    std::uint64_t number = 0;
    if (!read_number(text, number) || number < low || number > high) {
        throw bad_value(option, text, low, high);
    }
    return number;
}

std::uint64_t parse_size(std::string_view option, std::string_view text, std::uint64_t low,
                         std::uint64_t high) {
    const unsigned shift = text.empty() ? 0 : shift_of_unit(text.back());
    const std::string_view digits = shift == 0 ? text : text.substr(0, text.size() - 1);
    std::uint64_t number = 0;
    if (!read_number(digits, number) ||
        number > (std::numeric_limits<std::uint64_t>::max() >> shift)) {
        throw bad_value(option, text, low, high);
    }
    number <<= shift;
    if (number < low || number > high) {
        throw bad_value(option, text, low, high);
    }
    return number;
}

command_line::command_line(std::string program, std::vector<std::string> usages, std::string about)
    : program_(std::move(program)), usages_(std::move(usages)), about_(std::move(about)) {}

void command_line::value(char short_name, const char* long_name, const char* value_name,
                         std::string help, handler handle) {
    options_.push_back({short_name, long_name, value_name, std::move(help), std::move(handle)});
}

void command_line::flag(char short_name, const char* long_name, std::string help, bool& target) {
    value(short_name, long_name, nullptr, std::move(help),
          [&target](std::string_view, std::string_view) { target = true; });
}

void command_line::text(char short_name, const char* long_name, const char* value_name,
                        std::string help, std::string& target) {
    value(short_name, long_name, value_name, std::move(help),
          [&target](std::string_view option, std::string_view text) {
              if (text.empty()) {
                  throw failure(exit_code::usage, std::string(option) + ": must not be empty");
              }
              target = text;
          });
}

void command_line::size(char short_name, const char* long_name, const char* value_name,
                        std::string help, std::uint64_t& target, std::uint64_t low,
                        std::uint64_t high) {
    value(short_name, long_name, value_name, std::move(help),
          [&target, low, high](std::string_view option, std::string_view text) {
              target = parse_size(option, text, low, high);
          });
}

std::string command_line::help_text() const {
    std::string text;
    for (const auto& usage : usages_) {
        text += (text.empty() ? "Usage: " : "       ") + program_ + " " + usage + "\n";
    }
    text += "\n" + about_ + "\nOptions:\n";
    const auto add = [&text](char short_name, const char* long_name, const char* value_name,
                             const std::string& help) {
        std::string line = short_name != 0 ? std::string("  -") + short_name + ", --" : "      --";
        line += long_name;
        if (value_name != nullptr) {
            line.append("=").append(value_name);
        }
        line.resize(std::max(line.size() + 2, help_column), ' ');
        // A line break in the help text goes on below its start.
        for (const char character : help) {
            line += character;
            if (character == '\n') {
                line.append(help_column, ' ');
            }
        }
        text += line + "\n";
    };
    for (const auto& option : options_) {
        add(option.short_name, option.long_name, option.value_name, option.help);
    }
    add('h', "help", nullptr, "print this text");
    return text + "\n" + exit_code_help;
}

failure command_line::usage_failure(const std::string& line) const {
    return {exit_code::usage, line + " (" + program_ + " --help lists the options)"};
}

const command_line::option_entry& command_line::entry_of(int getopt_result) const {
    if (getopt_result >= first_long_only) {
        return options_[static_cast<std::size_t>(getopt_result - first_long_only)];
    }
    return *std::find_if(options_.begin(), options_.end(), [getopt_result](const auto& option) {
        return option.short_name == getopt_result;
    });
}

bool command_line::parse(int argc, char** argv, std::vector<std::string>& arguments,
                         std::size_t max_arguments) {
    std::string short_names = ":h"; // ':' first: a missing value is told apart
    std::vector<::option> long_names;
    for (std::size_t i = 0; i < options_.size(); ++i) {
        const option_entry& option = options_[i];
        const int needs_value = option.value_name != nullptr ? required_argument : no_argument;
        if (option.short_name != 0) {
            short_names += option.short_name;
            if (option.value_name != nullptr) {
                short_names += ':';
            }
        }
        long_names.push_back(
            {option.long_name, needs_value, nullptr, first_long_only + static_cast<int>(i)});
    }
    long_names.push_back({"help", no_argument, nullptr, help_option});
    long_names.push_back({nullptr, 0, nullptr, 0});

    opterr = 0; // the one line on stderr is ours
    optind = 1;
    for (;;) {
        const int result = getopt_long(argc, argv, short_names.c_str(), long_names.data(), nullptr);
        if (result == -1) {
            break;
        }
        if (result == 'h' || result == help_option) {
            static_cast<void>(std::fputs(help_text().c_str(), stdout)); // checked at the end
            return false;
        }
        // With a short option optind may still point at the same word, so name it by its letter.
        const std::string named = optopt > 0 && optopt < first_long_only
                                      ? std::string("-") + static_cast<char>(optopt)
                                      : std::string(argv[optind - 1]);
        if (result == ':') {
            throw usage_failure(named + ": needs a value");
        }
        if (result == '?') {
            // For "--flag=value" getopt_long() leaves the option's own code in optopt.
            throw usage_failure(
                named + (optopt >= first_long_only ? ": takes no value" : ": no such option"));
        }
        const option_entry& entry = entry_of(result);
        entry.handle(std::string("--") + entry.long_name, optarg != nullptr ? optarg : "");
    }
    for (int i = optind; i < argc; ++i) {
        if (arguments.size() == max_arguments) {
            throw usage_failure(std::string("unexpected argument '") + argv[i] + "'");
        }
        arguments.emplace_back(argv[i]);
    }
    return true;
}

} // namespace samples
