// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "options/environment.h"

#include <cerrno>
#include <cstdlib>

namespace hcamem::core {

const char* environment(const char* name) noexcept {
    const char* value = secure_getenv(name);
    return value != nullptr && value[0] != '\0' ? value : nullptr;
}

bool parse_bytes(const char* text, std::uint64_t& bytes) noexcept {
    if (text[0] < '0' || text[0] > '9') { // strtoull() would take a sign or a blank
        return false;
    }
    char* end = nullptr;
    const int saved = errno;
    errno = 0;
    const std::uint64_t number = std::strtoull(text, &end, 10);
    const bool fits = errno == 0;
    errno = saved;
    unsigned shift = 0;
    switch (*end) {
    case '\0':
        break;
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    case 't':
    case 'T':
        shift = 40;
        break;
    default:
        return false;
    }
    if (!fits || (shift != 0 && end[1] != '\0') || number > (UINT64_MAX >> shift)) {
        return false;
    }
    bytes = number << shift;
    return true;
}

} // namespace hcamem::core
