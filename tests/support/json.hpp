// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Reads the JSON that programs of this project write.
#ifndef TESTS_SUPPORT_JSON_HPP
#define TESTS_SUPPORT_JSON_HPP

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace support {

/// A value: object, list, string, number or one of the words true, false, null. Every access
/// throws std::runtime_error with the key if the value is of another kind or missing.
class Json {
  public:
    /// All of the text must be one value.
    static Json parse(std::string_view text);
    static Json read_file(const std::string& path);

    [[nodiscard]] const Json& operator[](const std::string& key) const;
    [[nodiscard]] bool has(const std::string& key) const { return members_.contains(key); }
    [[nodiscard]] const std::vector<Json>& list() const;
    [[nodiscard]] const std::string& string() const;
    [[nodiscard]] std::uint64_t unsigned_number() const;
    [[nodiscard]] double number() const;

  private:
    friend class JsonReader;
    enum class Kind { object, list, string, number, word };

    void require(Kind kind, const char* name) const;

    Kind kind_ = Kind::word;
    std::string text_; // of a string, number or word
    std::vector<Json> elements_;
    std::map<std::string, Json> members_;
};

} // namespace support

#endif
