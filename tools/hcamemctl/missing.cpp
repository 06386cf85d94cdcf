// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "missing.hpp"

#include <cstdio>

#include "json.hpp"

namespace ctl {

void write_json(json_writer& json, const missing_parts& missing) {
    json.member("complete", missing.empty()).key("missing").begin_array();
    for (const missing_part& part : missing) {
        json.begin_object()
            .member("what", part.what)
            .member("reason", part.reason)
            .member("remedy", part.remedy)
            .end_object();
    }
    json.end_array();
}

void report(const missing_parts& missing) {
    for (const missing_part& part : missing) {
        std::fprintf(stderr, "hcamemctl: not shown: %s: %s; %s\n", part.what.c_str(),
                     part.reason.c_str(), part.remedy.c_str());
    }
}

} // namespace ctl
