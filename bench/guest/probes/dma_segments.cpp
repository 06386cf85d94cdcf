// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "probes/dma_segments.hpp"

#include <cstdio>
#include <fstream>

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

dma_segments::dma_segments()
    : group_("dma_segments_" + std::to_string(getpid())),
      instance_(std::string(tracing) + "instances/" + group_) {
    support::must(mkdir(instance_.c_str(), 0700), instance_.c_str());
    try {
        add_probe("r:" + group_ + "/pinned ib_umem_get segments=$retval->sgt_append.sgt.nents\n");
        add_probe("r:" + group_ + "/dmabuf dma_buf_map_attachment segments=$retval->nents\n");
        support::write_text(instance_ + "/events/" + group_ + "/enable", "1");
    } catch (...) {
        remove();
        throw;
    }
}

dma_segments::~dma_segments() {
    remove();
}

void dma_segments::remove() noexcept {
    try {
        const std::string enable = instance_ + "/events/" + group_ + "/enable";
        if (access(enable.c_str(), F_OK) == 0) {
            support::write_text(enable, "0");
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "a probe stays: %s\n", error.what());
    }
    rmdir(instance_.c_str());
    for (const char* const probe : {"pinned", "dmabuf"}) {
        try {
            add_probe("-:" + group_ + "/" + probe + "\n");
        } catch (const std::exception&) {
            continue; // it was never there
        }
    }
}

void dma_segments::clear() {
    // Opening it to be truncated is what empties it.
    const std::string path = instance_ + "/trace";
    const support::UniqueFd emptied(
        support::must(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC), path.c_str()));
}

std::uint64_t dma_segments::value() const {
    std::ifstream trace(instance_ + "/trace");
    std::uint64_t sum = 0;
    constexpr std::string_view mark = " segments=";
    for (std::string line; std::getline(trace, line);) {
        const std::size_t at = line.find(mark);
        if (!line.starts_with('#') && at != std::string::npos) {
            sum += std::stoull(line.substr(at + mark.size()));
        }
    }
    return sum;
}

} // namespace bench
