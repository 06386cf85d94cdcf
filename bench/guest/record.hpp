// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_GUEST_RECORD_HPP
#define BENCH_GUEST_RECORD_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

/// Writes measurements, one JSON object per line.
class recorder {
  public:
    /// Throws std::system_error.
    explicit recorder(const std::string& path);

    /// The first line: which benchmark, which machine, in which unit.
    void begin(std::string_view benchmark, bool quick);
    /// Samples of what the names say, for buffers of so many bytes.
    void add(const std::vector<std::pair<std::string_view, std::string_view>>& names,
             std::size_t bytes, const std::vector<std::int64_t>& samples);
    /// That something is not measured, and why.
    void skip(std::string_view candidate, std::size_t bytes, std::string_view why);

  private:
    void end_line();

    struct closer {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, closer> file_;
};

} // namespace bench

#endif
