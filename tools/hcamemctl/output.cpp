// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "output.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "failure.hpp"

namespace ctl {

void print(std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
        if (written < 0 && errno != EINTR) {
            throw failure(exit_code::failed, std::string("cannot write: ") + std::strerror(errno));
        }
        text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
}

void say(std::string_view text) {
    const std::string line = "hcamemctl: " + std::string(text) + '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);
}

} // namespace ctl
