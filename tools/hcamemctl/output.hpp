// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEMCTL_OUTPUT_HPP
#define HCAMEMCTL_OUTPUT_HPP

#include <string_view>

namespace ctl {

/// All of the text to stdout, at once; throws failure if it cannot be written.
void print(std::string_view text);

/// A line on stderr that begins with the program's name.
void say(std::string_view text);

} // namespace ctl

#endif
