// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "record.hpp"

#include <cstdlib>

#include <sys/utsname.h>

#include "probes/clock.hpp"
#include "support/failure.hpp"

namespace bench {

// Names are ours: none has a character that JSON wants escaped.
recorder::recorder(const std::string& path) : file_(std::fopen(path.c_str(), "we")) {
    if (file_ == nullptr) {
        support::fail(path);
    }
}

void recorder::begin(std::string_view benchmark, bool quick) {
    utsname kernel{};
    uname(&kernel);
    std::fprintf(
        file_.get(), R"({"benchmark": "%.*s", "kernel": "%s %s", "unit": "%s", "quick": %s})",
        static_cast<int>(benchmark.size()), benchmark.data(), kernel.sysname, kernel.release,
        counts_instructions() ? "instructions" : "ns", quick ? "true" : "false");
    end_line();
}

void recorder::add(const std::vector<std::pair<std::string_view, std::string_view>>& names,
                   std::size_t bytes, const std::vector<std::int64_t>& samples) {
    std::fprintf(file_.get(), R"({"bytes": %zu)", bytes);
    for (const auto& [name, value] : names) {
        std::fprintf(file_.get(), R"(, "%.*s": "%.*s")", static_cast<int>(name.size()), name.data(),
                     static_cast<int>(value.size()), value.data());
    }
    std::fputs(R"(, "samples": [)", file_.get());
    for (std::size_t index = 0; index < samples.size(); ++index) {
        std::fprintf(file_.get(), "%s%lld", index == 0 ? "" : ", ",
                     static_cast<long long>(samples[index]));
    }
    std::fputs("]}", file_.get());
    end_line();
}

void recorder::skip(std::string_view candidate, std::size_t bytes, std::string_view why) {
    std::fprintf(file_.get(), R"({"bytes": %zu, "candidate": "%.*s", "skipped": "%.*s"})", bytes,
                 static_cast<int>(candidate.size()), candidate.data(), static_cast<int>(why.size()),
                 why.data());
    end_line();
}

void recorder::end_line() {
    std::fputc('\n', file_.get());
    if (std::fflush(file_.get()) != 0) {
        support::fail("writing the measurements");
    }
}

} // namespace bench
