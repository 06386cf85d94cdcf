// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "probes/registrations.hpp"

#include <cstdio>
#include <fstream>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/unique_fd.hpp"

namespace bench {
namespace {

constexpr const char* tracing = "/sys/kernel/tracing/";

void add_probe(const std::string& definition) {
    const std::string path = std::string(tracing) + "kprobe_events";
    const support::UniqueFd events(
        support::must(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC), path.c_str()));
    support::must(write(events.get(), definition.data(), definition.size()), definition.c_str());
}

} // namespace

registrations::registrations()
    : group_("registrations_" + std::to_string(getpid())),
      instance_(std::string(tracing) + "instances/" + group_) {
    support::must(mkdir(instance_.c_str(), 0700), instance_.c_str());
    try {
        add_probe("r:" + group_ + "/pinned ib_umem_get segments=$retval->sgt_append.sgt.nents\n");
        add_probe("r:" + group_ + "/dmabuf dma_buf_map_attachment segments=$retval->nents\n");
        add_probe("r:" + group_ + "/pinned_done rxe_reg_user_mr\n");
        add_probe("r:" + group_ + "/dmabuf_done rxe_reg_user_mr_dmabuf\n");
        support::write_text(instance_ + "/trace_clock", "x86-tsc");
        support::write_text(instance_ + "/events/" + group_ + "/enable", "1");
    } catch (...) {
        remove();
        throw;
    }
}

registrations::~registrations() {
    remove();
}

void registrations::remove() noexcept {
    try {
        const std::string enable = instance_ + "/events/" + group_ + "/enable";
        if (access(enable.c_str(), F_OK) == 0) {
            support::write_text(enable, "0");
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "a probe stays: %s\n", error.what());
    }
    rmdir(instance_.c_str());
    for (const char* const probe : {"pinned", "dmabuf", "pinned_done", "dmabuf_done"}) {
        try {
            add_probe("-:" + group_ + "/" + probe + "\n");
        } catch (const std::exception&) {
            continue; // it was never there
        }
    }
}

void registrations::clear() {
    // Opening it to be truncated is what empties it.
    const std::string path = instance_ + "/trace";
    const support::UniqueFd emptied(
        support::must(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC), path.c_str()));
}

registrations::seen registrations::value() const {
    std::ifstream trace(instance_ + "/trace");
    seen sums;
    std::uint64_t began = 0;
    constexpr std::string_view mark = " segments=";
    for (std::string line; std::getline(trace, line);) {
        if (line.starts_with('#')) {
            continue;
        }
        // "     bench-91      [000] ...1. 123456789: pinned: (..." with the time in ticks
        const std::size_t colon = line.find(": ");
        const std::uint64_t time = std::stoull(line.substr(line.rfind(' ', colon) + 1));
        const std::size_t at = line.find(mark);
        if (at != std::string::npos) {
            sums.segments += std::stoull(line.substr(at + mark.size()));
            began = time;
        } else {
            sums.table_ticks += time - began;
        }
    }
    return sums;
}

} // namespace bench
