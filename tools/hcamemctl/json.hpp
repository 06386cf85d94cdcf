// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEMCTL_JSON_HPP
#define HCAMEMCTL_JSON_HPP

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace ctl {

using json = nlohmann::ordered_json;

/// null if there is none.
template <class Value>
json json_or_null(const std::optional<Value>& value) {
    return value ? json(*value) : json();
}

/// One line. Names may hold any bytes: what is not UTF-8 becomes U+FFFD.
inline std::string line_of(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
}

} // namespace ctl

#endif
