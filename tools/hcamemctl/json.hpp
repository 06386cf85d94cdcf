// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEMCTL_JSON_HPP
#define HCAMEMCTL_JSON_HPP

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ctl {

/// Writes one JSON value (RFC 8259) on one line. The caller opens and closes in order.
class json_writer {
  public:
    json_writer& begin_object() { return open('{'); }
    json_writer& end_object() { return shut('}'); }
    json_writer& begin_array() { return open('['); }
    json_writer& end_array() { return shut(']'); }
    /// Name of the member whose value comes next.
    json_writer& key(std::string_view name);

    /// Any bytes: what is not UTF-8 becomes U+FFFD.
    json_writer& value(std::string_view text);
    json_writer& value(const char* text) { return value(std::string_view(text)); }
    json_writer& value(bool truth) { return raw(truth ? "true" : "false"); }
    template <std::integral Number>
    json_writer& value(Number number) {
        return raw(std::to_string(number));
    }
    json_writer& null() { return raw("null"); }
    /// null if there is none.
    template <class Value>
    json_writer& value(const std::optional<Value>& maybe) {
        return maybe ? value(*maybe) : null();
    }
    template <class Value>
    json_writer& member(std::string_view name, const Value& of) {
        return key(name).value(of);
    }

    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    json_writer& open(char bracket);
    json_writer& shut(char bracket);
    json_writer& raw(std::string_view text);
    void separate();

    std::string text_;
    bool first_ = true; // nothing precedes the next value in its object or array
};

} // namespace ctl

#endif
