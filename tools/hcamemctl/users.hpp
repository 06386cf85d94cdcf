// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEMCTL_USERS_HPP
#define HCAMEMCTL_USERS_HPP

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>

namespace ctl {

/// Names of users, each asked for once.
class user_names {
  public:
    /// Nothing if no user of this machine has the uid.
    const std::optional<std::string>& name(uid_t uid);
    /// Its name, or the number; printable.
    std::string label(uid_t uid);
    /// From a name or a number; throws failure.
    static uid_t uid_of(const std::string& given);

  private:
    std::map<uid_t, std::optional<std::string>> names_;
};

} // namespace ctl

#endif
