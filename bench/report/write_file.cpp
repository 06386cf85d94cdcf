// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "report/write_file.hpp"

#include <cerrno>
#include <fstream>
#include <system_error>

namespace bench {

void write_file(const std::filesystem::path& path, std::string_view text) {
    const std::filesystem::path beside = path.string() + ".tmp";
    std::ofstream out(beside, std::ios::trunc);
    out << text;
    out.close();
    if (!out) {
        const int error = errno;
        std::error_code ignored;
        std::filesystem::remove(beside, ignored);
        throw std::system_error(error, std::generic_category(), beside.string());
    }
    std::filesystem::rename(beside, path);
}

} // namespace bench
