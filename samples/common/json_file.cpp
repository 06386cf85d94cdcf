// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "json_file.hpp"

#include "exit_codes.hpp"
#include "program.hpp"

#include <array>
#include <sys/stat.h>
#include <unistd.h>

namespace samples {
namespace {

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char character : text) {
        if (character == '"' || character == '\\') {
            result += '\\';
        }
        // Names of HCAs and kernels have no control characters.
        result += static_cast<unsigned char>(character) < ' ' ? ' ' : character;
    }
    return result + '"';
}

std::string text_of(double number) {
    std::array<char, 400> text{}; // the largest double has 309 digits
    const int length = std::snprintf(text.data(), text.size(), "%.3f", number);
    return {text.data(), static_cast<std::size_t>(length)};
}

std::string text_of(std::uint64_t number) {
    return std::to_string(number);
}

template <typename Number>
std::string list_of(const std::vector<Number>& numbers) {
    std::string list;
    for (const Number number : numbers) {
        list += (list.empty() ? "" : ", ") + text_of(number);
    }
    return "[" + list + "]";
}

} // namespace

json_file::json_file(const std::string& path) : path_(path) {
    if (path.empty()) {
        return;
    }
    file_.reset(std::fopen(path.c_str(), "we"));
    if (!file_) {
        throw failure(exit_code::usage, with_errno("--json " + path));
    }
}

json_file::~json_file() {
    struct stat status {};
    // Not for /dev/stdout and the like.
    if (file_ && fstat(fileno(file_.get()), &status) == 0 && S_ISREG(status.st_mode)) {
        unlink(path_.c_str());
    }
}

void json_file::add(std::string_view key, std::string_view text) {
    add_raw(key, quoted(text));
}

void json_file::add(std::string_view key, double number) {
    add_raw(key, text_of(number));
}

void json_file::add(std::string_view key, const std::vector<std::uint64_t>& numbers) {
    add_raw(key, list_of(numbers));
}

void json_file::add(std::string_view key, const std::vector<double>& numbers) {
    add_raw(key, list_of(numbers));
}

void json_file::add(std::string_view key, const std::vector<address_range>& ranges) {
    std::string list;
    for (const auto& range : ranges) {
        list += (list.empty() ? "[" : ", [") + std::to_string(range.begin) + ", " +
                std::to_string(range.end) + "]";
    }
    add_raw(key, "[" + list + "]");
}

void json_file::add_raw(std::string_view key, const std::string& value) {
    members_ += (members_.empty() ? "  " : ",\n  ") + quoted(key) + ": " + value;
}

void json_file::write() {
    if (!file_) {
        return;
    }
    const int printed = std::fprintf(file_.get(), "{\n%s\n}\n", members_.c_str());
    const int closed = std::fclose(file_.release());
    if (printed < 0 || closed != 0) {
        throw failure(exit_code::unexpected, with_errno("cannot write " + path_));
    }
}

} // namespace samples
