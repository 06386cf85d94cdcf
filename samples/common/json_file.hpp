// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The machine-readable result of a sample: one JSON object in a file.
#ifndef SAMPLES_COMMON_JSON_FILE_HPP
#define SAMPLES_COMMON_JSON_FILE_HPP

#include "message_memory.hpp"

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace samples {

class json_file {
  public:
    /// An empty path writes nothing. Opens the file at once, so that a path that cannot be written
    /// is refused before the run; throws failure(usage).
    explicit json_file(const std::string& path);
    /// A run that did not get to its result leaves no file.
    ~json_file();
    json_file(const json_file&) = delete;
    json_file& operator=(const json_file&) = delete;

    void add(std::string_view key, std::string_view text);
    template <std::integral Number>
    void add(std::string_view key, Number number) {
        add_raw(key, std::to_string(number));
    }
    void add(std::string_view key, double number);
    void add(std::string_view key, const std::vector<std::uint64_t>& numbers);
    void add(std::string_view key, const std::vector<double>& numbers);
    /// As a list of [begin, end) pairs.
    void add(std::string_view key, const std::vector<address_range>& ranges);

    /// Writes the object. Throws failure(unexpected).
    void write();

  private:
    struct close_file {
        void operator()(std::FILE* file) const noexcept { std::fclose(file); }
    };

    void add_raw(std::string_view key, const std::string& value);

    std::string path_;
    std::string members_;
    std::unique_ptr<std::FILE, close_file> file_;
};

} // namespace samples

#endif
