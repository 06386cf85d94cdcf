// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_REPORT_WRITE_FILE_HPP
#define BENCH_REPORT_WRITE_FILE_HPP

#include <filesystem>
#include <string_view>

namespace bench {

/// Replaces a file by this text, or leaves it as it was: whoever reads it, even after a
/// Ctrl-C, finds all of the old text or all of the new. Throws std::system_error.
void write_file(const std::filesystem::path& path, std::string_view text);

} // namespace bench

#endif
