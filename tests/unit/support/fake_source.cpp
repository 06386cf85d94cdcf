// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "support/fake_source.hpp"

#include <memory>
#include <stdexcept>

#include <sys/mman.h>
#include <sys/socket.h>

#include "api/handle_cast.h"
#include "error/message.h"
#include "options/options.h"
#include "os/process.h"
#include "pool/pool.h"

namespace unit {
namespace {

using namespace hcamem::core;

class fake_source final : public source {
  public:
    fake_source(std::unique_ptr<source> real, fake_limits& limits)
        : real_(std::move(real)), limits_(limits) {}

    int map(void* address, std::size_t bytes) noexcept override {
        if (bytes <= limits_.largest_slab) {
            return real_->map(address, bytes);
        }
        ++limits_.refused;
        if (limits_.unmaps || limits_.occupies) {
            munmap(address, bytes);
        }
        if (limits_.occupies) {
            mmap(address, kernel_page, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        }
        return fail(limits_.error, "the fake kernel refuses %zu bytes", bytes);
    }
    int map_shared(void* address, std::size_t bytes, file& memory) noexcept override {
        return real_->map_shared(address, bytes, memory);
    }
    int export_dmabuf(const void* address, std::size_t bytes,
                      std::uint64_t& offset) noexcept override {
        return real_->export_dmabuf(address, bytes, offset);
    }
    int open_events(file& opened) noexcept override {
        if (!limits_.tells_events) {
            return real_->open_events(opened);
        }
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
            return fail(errno, "no socket pair");
        }
        opened = file(ends[0]);
        limits_.events_end = ends[1];
        return 0;
    }
    [[nodiscard]] std::uint32_t kind() const noexcept override { return real_->kind(); }
    [[nodiscard]] std::uint32_t mapping() const noexcept override { return real_->mapping(); }
    [[nodiscard]] bool can_export() const noexcept override { return real_->can_export(); }
    [[nodiscard]] bool pinnable() const noexcept override { return real_->pinnable(); }

  private:
    std::unique_ptr<source> real_;
    fake_limits& limits_;
};

} // namespace

pool_ptr make_pool(const hcamem_options& options, fake_limits& limits) {
    process_page* const process = enter_process();
    hcamem_options read{};
    std::unique_ptr<source> real;
    if (read_options(options, read) != 0 || open_source(read, real) != 0) {
        throw std::runtime_error(hcamem_last_message());
    }
    pool* const core = pool::take(process->pools);
    if (core->open(read, std::make_unique<fake_source>(std::move(real), limits),
                   process->generation) != 0) {
        throw std::runtime_error(hcamem_last_message());
    }
    return pool_ptr(to_handle(core));
}

} // namespace unit
