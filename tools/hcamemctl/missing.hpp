// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEMCTL_MISSING_HPP
#define HCAMEMCTL_MISSING_HPP

#include <string>
#include <vector>

namespace ctl {

class json_writer;

/// A part of the answer that could not be had.
struct missing_part {
    std::string what;
    std::string reason;
    std::string remedy;
};
using missing_parts = std::vector<missing_part>;

/// The members "complete" and "missing" of an object.
void write_json(json_writer& json, const missing_parts& missing);
/// A line for each, on stderr.
void report(const missing_parts& missing);

} // namespace ctl

#endif
