// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "json.hpp"

#include <charconv>
#include <stdexcept>

#include "guest.hpp"

namespace support {

namespace {

template <class Number>
Number to_number(const std::string& text) {
    Number value{};
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size()) {
        throw std::runtime_error("JSON: '" + text + "' is not such a number");
    }
    return value;
}

} // namespace

/// Reads from the front of the text, value by value.
class JsonReader {
  public:
    explicit JsonReader(std::string_view text) : rest_(text) {}

    Json value() {
        Json result;
        switch (peek()) {
        case '{':
            result.kind_ = Json::Kind::object;
            read_members(result);
            break;
        case '[':
            result.kind_ = Json::Kind::list;
            read_elements(result);
            break;
        case '"':
            result.kind_ = Json::Kind::string;
            result.text_ = quoted();
            break;
        default:
            result.text_ = bare();
            result.kind_ =
                result.text_.find_first_of("0123456789") == 0 || result.text_.starts_with('-')
                    ? Json::Kind::number
                    : Json::Kind::word;
        }
        return result;
    }

    void expect_end() {
        skip_space();
        if (!rest_.empty()) {
            fail("more behind the value");
        }
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw std::runtime_error("JSON: " + what + " at '" + std::string(rest_.substr(0, 20)) +
                                 "'");
    }

    void skip_space() {
        const auto start = rest_.find_first_not_of(" \t\r\n");
        rest_.remove_prefix(start == std::string_view::npos ? rest_.size() : start);
    }

    char peek() {
        skip_space();
        if (rest_.empty()) {
            fail("the text ends early");
        }
        return rest_.front();
    }

    bool take(char wanted) {
        if (peek() != wanted) {
            return false;
        }
        rest_.remove_prefix(1);
        return true;
    }

    void must_take(char wanted) {
        if (!take(wanted)) {
            fail(std::string("no '") + wanted + "'");
        }
    }

    void read_members(Json& object) {
        must_take('{');
        if (take('}')) {
            return;
        }
        do {
            peek();
            const std::string key = quoted();
            must_take(':');
            if (!object.members_.emplace(key, value()).second) {
                fail("a second \"" + key + "\"");
            }
        } while (take(','));
        must_take('}');
    }

    void read_elements(Json& list) {
        must_take('[');
        if (take(']')) {
            return;
        }
        do {
            list.elements_.push_back(value());
        } while (take(','));
        must_take(']');
    }

    std::string quoted() {
        must_take('"');
        std::string text;
        while (!rest_.empty() && rest_.front() != '"') {
            if (rest_.front() == '\\') {
                rest_.remove_prefix(1);
            }
            if (rest_.empty()) {
                break;
            }
            text += rest_.front();
            rest_.remove_prefix(1);
        }
        must_take('"');
        return text;
    }

    std::string bare() {
        const std::string text(rest_.substr(0, rest_.find_first_of(" \t\r\n,]}")));
        if (text.empty()) {
            fail("no value");
        }
        rest_.remove_prefix(text.size());
        return text;
    }

    std::string_view rest_;
};

Json Json::parse(std::string_view text) {
    JsonReader reader(text);
    Json result = reader.value();
    reader.expect_end();
    return result;
}

Json Json::read_file(const std::string& path) {
    return parse(read_text(path));
}

const Json& Json::operator[](const std::string& key) const {
    require(Kind::object, "an object");
    const auto found = members_.find(key);
    if (found == members_.end()) {
        throw std::runtime_error("JSON: there is no \"" + key + "\"");
    }
    return found->second;
}

const std::vector<Json>& Json::list() const {
    require(Kind::list, "a list");
    return elements_;
}

const std::string& Json::string() const {
    require(Kind::string, "a string");
    return text_;
}

std::uint64_t Json::unsigned_number() const {
    require(Kind::number, "a number");
    return to_number<std::uint64_t>(text_);
}

double Json::number() const {
    require(Kind::number, "a number");
    return to_number<double>(text_);
}

void Json::require(Kind kind, const char* name) const {
    if (kind_ != kind) {
        throw std::runtime_error(std::string("JSON: not ") + name + ": '" + text_ + "'");
    }
}

} // namespace support
