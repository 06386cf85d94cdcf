// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Ordinary memory, for machines without the module. Fork policies as the device
// has them: a child's copy-on-write would otherwise give the parent other pages
// than those the HCA writes to.
#include <atomic>
#include <cerrno>
#include <cstring>

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "error/message.h"
#include "os/file.h"
#include "os/sealed_memory.h"
#include "source/source.h"

namespace hcamem::core {
namespace {

class memory_source final : public source {
  public:
    explicit memory_source(const hcamem_options& options) noexcept
        : fork_(options.fork),
          numa_node_(options.numa_node),
          mapping_(options.mapping == HCAMEM_MAP_PAGES ? HCAMEM_MAP_PAGES : HCAMEM_MAP_HUGE) {}

    int map(void* address, std::size_t bytes) noexcept override {
        if (fork_ == HCAMEM_FORK_SHARE) {
            file memory;
            return map_shared(address, bytes, memory);
        }
        const int result = map_private(address, bytes);
        return result == 0 ? advise(address, bytes) : result;
    }

    // A memfd and not anonymous shared memory: for its descriptor, and its name in
    // /proc/PID/maps.
    int map_shared(void* address, std::size_t bytes, file& memory) noexcept override {
        file fresh;
        int result = make_sealed_memory("hcamem", bytes, fresh);
        if (result != 0) {
            return result;
        }
        if (mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fresh.descriptor(),
                 0) == MAP_FAILED) {
            return failed("mmap", bytes);
        }
        result = advise(address, bytes);
        if (result == 0) {
            memory = std::move(fresh);
        }
        return result;
    }

    int export_dmabuf(const void* /*address*/, std::size_t /*bytes*/,
                      std::uint64_t& /*offset*/) noexcept override {
        return fail(EOPNOTSUPP,
                    "ordinary memory cannot be exported as a dma-buf: this needs the device");
    }

    int open_events(file& /*opened*/) noexcept override { return 0; }
    [[nodiscard]] std::uint32_t kind() const noexcept override { return HCAMEM_MEMORY; }
    [[nodiscard]] std::uint32_t mapping() const noexcept override { return mapping_; }
    [[nodiscard]] bool can_export() const noexcept override { return false; }
    [[nodiscard]] bool pinnable() const noexcept override { return true; }

  private:
    static int failed(const char* what, std::size_t bytes) noexcept {
        const int error = errno;
        return fail(error, "%s for a slab of %s of ordinary memory: %s", what,
                    size_text(bytes).c_str(), strerrordesc_np(error));
    }

    static int map_private(void* address, std::size_t bytes) noexcept {
        void* memory = mmap(address, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        return memory != MAP_FAILED ? 0 : failed("mmap", bytes);
    }

    int advise(void* address, std::size_t bytes) const noexcept {
        if (fork_ == HCAMEM_FORK_ZERO && madvise(address, bytes, MADV_WIPEONFORK) != 0) {
            return failed("madvise(MADV_WIPEONFORK)", bytes);
        }
        if (fork_ == HCAMEM_FORK_DONTCOPY && madvise(address, bytes, MADV_DONTFORK) != 0) {
            return failed("madvise(MADV_DONTFORK)", bytes);
        }
        if (numa_node_ >= 0 && bind(address, bytes) != 0) {
            return failed("mbind", bytes);
        }
        const bool huge = mapping_ == HCAMEM_MAP_HUGE;
        if (madvise(address, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0 && huge) {
            static std::atomic<bool> said;
            warn_once(said, "this kernel has no transparent huge pages; ordinary pages are used");
        }
        return 0;
    }

    // Preferred, not bound: a full node must not bring the out-of-memory killer.
    [[nodiscard]] long bind(void* address, std::size_t bytes) const noexcept {
        constexpr unsigned long word_bits = 8 * sizeof(unsigned long);
        unsigned long nodes[16] = {};
        const auto node = static_cast<unsigned long>(numa_node_);
        if (node >= word_bits * 16) {
            errno = EINVAL;
            return -1;
        }
        nodes[node / word_bits] = 1UL << (node % word_bits);
        return syscall(SYS_mbind, address, bytes, MPOL_PREFERRED, nodes, word_bits * 16, 0);
    }

    const std::uint32_t fork_;
    const std::int32_t numa_node_;
    const std::uint32_t mapping_;
};

} // namespace

int open_memory_source(const hcamem_options& options, std::unique_ptr<source>& opened) {
    opened = std::make_unique<memory_source>(options);
    return 0;
}

} // namespace hcamem::core
