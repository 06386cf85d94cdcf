// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "users.hpp"

#include <pwd.h>

#include <cerrno>
#include <limits>
#include <vector>

#include "failure.hpp"
#include "files.hpp"
#include "text.hpp"

namespace ctl {

namespace {

/// Calls getpwuid_r() or getpwnam_r() with as much memory as it wants.
template <class Get, class Key>
std::optional<passwd> find(Get get, Key key, std::vector<char>& memory) {
    passwd entry{};
    passwd* found = nullptr;
    memory.resize(1024);
    while (get(key, &entry, memory.data(), memory.size(), &found) == ERANGE) {
        memory.resize(memory.size() * 2);
    }
    return found != nullptr ? std::optional(entry) : std::nullopt;
}

} // namespace

const std::optional<std::string>& user_names::name(uid_t uid) {
    const auto [place, fresh] = names_.try_emplace(uid);
    if (fresh) {
        std::vector<char> memory;
        if (const auto entry = find(getpwuid_r, uid, memory)) {
            place->second = entry->pw_name;
        }
    }
    return place->second;
}

std::string user_names::label(uid_t uid) {
    const auto& known = name(uid);
    return known ? printable(*known) : std::to_string(uid);
}

uid_t user_names::uid_of(const std::string& given) {
    std::vector<char> memory;
    if (const auto entry = find(getpwnam_r, given.c_str(), memory)) {
        return entry->pw_uid;
    }
    const auto number = parse_number(given);
    if (!number || *number > std::numeric_limits<uid_t>::max()) {
        throw failure(exit_code::absent, "there is no user '" + given + "'");
    }
    return static_cast<uid_t>(*number);
}

} // namespace ctl
