// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_GUEST_CTL_JSON_VALUE_HPP
#define TESTS_GUEST_CTL_JSON_VALUE_HPP

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// A parsed JSON value. Asking for what it is not throws.
class JsonValue {
  public:
    using Object = std::map<std::string, JsonValue>;
    using Array = std::vector<JsonValue>;

    JsonValue() = default; ///< null
    template <class Content>
    explicit JsonValue(Content content) : content_(std::move(content)) {}

    [[nodiscard]] const JsonValue& operator[](const std::string& name) const;
    [[nodiscard]] const JsonValue& operator[](std::size_t index) const { return array().at(index); }
    [[nodiscard]] const JsonValue& operator[](const char* name) const {
        return (*this)[std::string(name)];
    }
    [[nodiscard]] const JsonValue& operator[](int index) const {
        return (*this)[static_cast<std::size_t>(index)];
    }
    [[nodiscard]] std::size_t size() const { return array().size(); }
    [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(content_); }
    [[nodiscard]] bool truth() const { return std::get<bool>(content_); }
    [[nodiscard]] std::int64_t number() const { return std::get<std::int64_t>(content_); }
    [[nodiscard]] const std::string& string() const { return std::get<std::string>(content_); }
    [[nodiscard]] const Array& array() const { return std::get<Array>(content_); }
    [[nodiscard]] const Object& object() const { return std::get<Object>(content_); }

  private:
    std::variant<std::monostate, bool, std::int64_t, std::string, Array, Object> content_;
};

/// Strict: one value as RFC 8259 has it, in UTF-8, numbers whole, no member
/// twice. Throws std::runtime_error with the position of what is wrong.
JsonValue parse_json(std::string_view text);

#endif
