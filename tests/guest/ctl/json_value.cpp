// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "json_value.hpp"

#include <charconv>
#include <stdexcept>

namespace {

class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}

    JsonValue document() {
        JsonValue value = parse();
        skip_blanks();
        if (at_ != text_.size()) {
            wrong("something follows");
        }
        return value;
    }

  private:
    [[noreturn]] void wrong(const std::string& what) const {
        throw std::runtime_error("JSON, byte " + std::to_string(at_) + ": " + what + " in " +
                                 std::string(text_));
    }

    [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

    bool take(char c) {
        skip_blanks();
        if (peek() != c) {
            return false;
        }
        ++at_;
        return true;
    }

    void need(char c) {
        if (!take(c)) {
            wrong(std::string("no '") + c + "'");
        }
    }

    bool take_word(std::string_view word) {
        if (!text_.substr(at_).starts_with(word)) {
            return false;
        }
        at_ += word.size();
        return true;
    }

    JsonValue parse() {
        skip_blanks();
        if (peek() == '{') {
            return object();
        }
        if (peek() == '[') {
            return array();
        }
        if (peek() == '"') {
            return JsonValue(string());
        }
        if (take_word("null")) {
            return {};
        }
        if (take_word("true")) {
            return JsonValue(true);
        }
        if (take_word("false")) {
            return JsonValue(false);
        }
        return number();
    }

    JsonValue number() {
        std::int64_t value = 0;
        const auto [end, error] =
            std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        if (error != std::errc()) {
            wrong("no value");
        }
        at_ = static_cast<std::size_t>(end - text_.data());
        return JsonValue(value);
    }

    JsonValue array() {
        need('[');
        JsonValue::Array values;
        if (take(']')) {
            return JsonValue(values);
        }
        do {
            values.push_back(parse());
        } while (take(','));
        need(']');
        return JsonValue(values);
    }

    JsonValue object() {
        need('{');
        JsonValue::Object members;
        if (take('}')) {
            return JsonValue(members);
        }
        do {
            skip_blanks();
            std::string name = string();
            need(':');
            if (!members.emplace(name, parse()).second) {
                wrong("'" + name + "' twice");
            }
        } while (take(','));
        need('}');
        return JsonValue(members);
    }

    std::string string() {
        need('"');
        std::string value;
        while (peek() != '"') {
            if (at_ == text_.size()) {
                wrong("a string does not end");
            }
            if (static_cast<unsigned char>(peek()) < 0x20) {
                wrong("a control character in a string");
            }
            if (peek() == '\\') {
                ++at_;
                value += escaped();
            } else {
                value += text_[at_++];
            }
        }
        ++at_;
        return value;
    }

    /// What follows a backslash. Of \u only what one byte holds is ever written.
    char escaped() {
        constexpr std::string_view names = "\"\\/bfnrt";
        constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
        const auto name = names.find(peek());
        if (name != std::string_view::npos) {
            ++at_;
            return meanings[name];
        }
        unsigned code = 0;
        const char* digits = text_.data() + at_ + 1;
        if (peek() != 'u' || at_ + 5 > text_.size() ||
            std::from_chars(digits, digits + 4, code, 16).ptr != digits + 4 || code > 0x7f) {
            wrong("an escape that is none");
        }
        at_ += 5;
        return static_cast<char>(code);
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

} // namespace

const JsonValue& JsonValue::operator[](const std::string& name) const {
    const auto member = object().find(name);
    if (member == object().end()) {
        throw std::runtime_error("there is no member '" + name + "'");
    }
    return member->second;
}

JsonValue parse_json(std::string_view text) {
    return Parser(text).document();
}
