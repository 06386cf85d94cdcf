// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The answer of `show`, for people and for programs.
#ifndef HCAMEMCTL_HOLDINGS_FORMAT_HPP
#define HCAMEMCTL_HOLDINGS_FORMAT_HPP

#include <cstdint>
#include <optional>
#include <string>

#include "holdings.hpp"
#include "users.hpp"

namespace ctl {

/// Tables; whatever users have chosen in them is made printable.
std::string text_of(const holding_report& holdings, user_names& users);

/// One line; hcamemctl(8) describes it.
std::string json_of(const holding_report& holdings, user_names& users);

} // namespace ctl

#endif
