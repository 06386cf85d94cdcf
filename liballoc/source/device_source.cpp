// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Slabs from a device node: CREATE obtains the memory without mmap_lock, mmap()
// at the returned offset maps it.
#include <cerrno>
#include <cinttypes>
#include <cstring>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "error/message.h"
#include "source/node.h"
#include "source/source.h"

namespace hcamem::core {
namespace {

std::uint32_t fork_policy(std::uint32_t fork) noexcept {
    switch (fork) {
    case HCAMEM_FORK_DONTCOPY:
        return HCAMEM_FORK_POLICY_DONTCOPY;
    case HCAMEM_FORK_SHARE:
        return HCAMEM_FORK_POLICY_SHARE;
    default:
        return HCAMEM_FORK_POLICY_ZERO;
    }
}

class device_source final : public source {
  public:
    device_source(node&& from, const hcamem_options& options, std::uint32_t mapping) noexcept
        : node_(std::move(from)),
          mapping_(mapping),
          fork_(fork_policy(options.fork)),
          numa_node_(options.numa_node) {}

    int map(void* address, std::size_t bytes) noexcept override {
        hcamem_create request{};
        request.size = bytes;
        request.mapping = mapping_ == HCAMEM_MAP_HUGE ? HCAMEM_MAPPING_HUGE : HCAMEM_MAPPING_PAGES;
        request.fork = fork_;
        request.numa_node = numa_node_;
        if (ioctl(descriptor(), HCAMEM_IOC_CREATE, &request) != 0) {
            return refused(errno, bytes);
        }
        const auto offset = static_cast<off_t>(request.offset);
        if (mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor(),
                 offset) != MAP_FAILED) {
            return 0;
        }
        const int error = errno;
        give_back(bytes, offset);
        return fail(error, "mmap of a slab of %s from %s: %s", size_text(bytes).c_str(),
                    node_.path.c_str(), strerrordesc_np(error));
    }

    int map_shared(void* address, std::size_t bytes, file& memory) noexcept override {
        int result = map(address, bytes);
        if (result == 0) {
            std::uint64_t offset = 0;
            result = export_dmabuf(address, bytes, offset);
        }
        if (result >= 0) {
            memory = file(result);
            result = 0;
        }
        return result;
    }

    int export_dmabuf(const void* address, std::size_t bytes,
                      std::uint64_t& offset) noexcept override {
        if (!can_export()) {
            return fail(EOPNOTSUPP, "%s cannot export memory as a dma-buf", node_.path.c_str());
        }
        struct hcamem_export request {};
        request.addr = reinterpret_cast<std::uintptr_t>(address);
        request.length = bytes;
        if (ioctl(descriptor(), HCAMEM_IOC_EXPORT, &request) != 0) {
            const int error = errno;
            return fail(error, "export of %zu bytes from %s as a dma-buf: %s", bytes,
                        node_.path.c_str(),
                        error == ENODEV ? "the HCA was removed" : strerrordesc_np(error));
        }
        offset = request.offset;
        return request.fd;
    }

    int open_events(file& opened) noexcept override {
        // Read by another descriptor, events are this pool's own. Its name may belong to
        // another HCA by now.
        file again(open(node_.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        const int error = errno;
        struct stat mine {};
        struct stat found {};
        if (fstat(descriptor(), &mine) != 0) {
            return fail(errno, "%s cannot be told apart: %s", node_.path.c_str(),
                        strerrordesc_np(errno));
        }
        if (!again || fstat(again.descriptor(), &found) != 0 || found.st_rdev != mine.st_rdev) {
            return fail(again ? ENODEV : error, "%s cannot be opened to be told of events: %s",
                        node_.path.c_str(),
                        again ? "it is another node now" : strerrordesc_np(error));
        }
        opened = std::move(again);
        return 0;
    }

    [[nodiscard]] std::uint32_t kind() const noexcept override { return HCAMEM_DEVICE; }
    [[nodiscard]] std::uint32_t mapping() const noexcept override { return mapping_; }
    [[nodiscard]] bool can_export() const noexcept override {
        return (node_.info.capabilities & HCAMEM_CAP_EXPORT) != 0;
    }
    [[nodiscard]] bool pinnable() const noexcept override {
        return mapping_ == HCAMEM_MAP_PAGES ||
               (node_.info.capabilities & HCAMEM_CAP_HUGE_PINNABLE) != 0;
    }

  private:
    [[nodiscard]] int descriptor() const noexcept { return node_.device.descriptor(); }

    // A region that was never mapped would live as long as the descriptor; one that was
    // mapped dies with its mapping. Anywhere will do.
    void give_back(std::size_t bytes, off_t offset) const noexcept {
        void* elsewhere =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor(), offset);
        if (elsewhere != MAP_FAILED) {
            munmap(elsewhere, bytes);
        }
    }

    // Names the limit, its value and what to do about it.
    [[nodiscard]] int refused(int error, std::size_t bytes) const noexcept {
        const size_text wanted(bytes);
        const char* path = node_.path.c_str();
        hcamem_info now{};
        ioctl(descriptor(), HCAMEM_IOC_INFO, &now);
        switch (error) {
        case EAGAIN: {
            rlimit limit{};
            getrlimit(RLIMIT_MEMLOCK, &limit);
            return fail(EAGAIN,
                        "%s of device memory from %s refused: over RLIMIT_MEMLOCK, which is %s for "
                        "all processes of the user together (hcamem holds %s for it); raise it "
                        "(ulimit -l, /etc/security/limits.conf, LimitMEMLOCK=) or give "
                        "CAP_IPC_LOCK",
                        wanted.c_str(), path, size_text(limit.rlim_cur).c_str(),
                        size_text(now.user_bytes).c_str());
        }
        case EDQUOT: {
            const bool user =
                now.max_bytes_per_user != 0 && now.user_bytes + bytes > now.max_bytes_per_user;
            return fail(EDQUOT,
                        "%s of device memory from %s refused: over the module's cap %s of %s (%s "
                        "in use); root may raise /sys/module/hcamem/parameters/%s",
                        wanted.c_str(), path, user ? "max_bytes_per_user" : "max_bytes",
                        size_text(user ? now.max_bytes_per_user : now.max_bytes).c_str(),
                        size_text(user ? now.user_bytes : now.total_bytes).c_str(),
                        user ? "max_bytes_per_user" : "max_bytes");
        }
        case ENOMEM:
            return fail(ENOMEM,
                        "%s of device memory from %s refused: the machine or the memory "
                        "cgroup does not have that much free beyond the reserve of %s "
                        "(/sys/module/hcamem/parameters/reserve_bytes)",
                        wanted.c_str(), path, size_text(now.reserve_bytes).c_str());
        case ENODEV:
            return fail(ENODEV, "%s of device memory from %s refused: its HCA was removed",
                        wanted.c_str(), path);
        case EINVAL:
            return fail(EINVAL, "%s of device memory from %s refused: is NUMA node %d online?",
                        wanted.c_str(), path, numa_node_);
        default:
            return fail(error, "%s of device memory from %s refused: %s", wanted.c_str(), path,
                        strerrordesc_np(error));
        }
    }

    const node node_;
    const std::uint32_t mapping_; // HCAMEM_MAP_HUGE, HCAMEM_MAP_PAGES
    const std::uint32_t fork_;    // enum hcamem_fork of the kernel interface
    const std::int32_t numa_node_;
};

/// HCAMEM_MAP_HUGE or _PAGES for what the program asked and the kernel can. -errno with a message.
int choose_mapping(const hcamem_options& options, const node& from, std::uint32_t& mapping) {
    const std::uint64_t can = from.info.capabilities;
    const bool huge_is_safe =
        (can & HCAMEM_CAP_HUGE_PINNABLE) != 0 || (options.flags & HCAMEM_OPT_DMABUF_ONLY) != 0;
    mapping = options.mapping;
    if (mapping == HCAMEM_MAP_AUTO) {
        mapping = (can & HCAMEM_CAP_HUGE) != 0 && huge_is_safe ? HCAMEM_MAP_HUGE : HCAMEM_MAP_PAGES;
    }
    const bool huge = mapping == HCAMEM_MAP_HUGE;
    if ((can & (huge ? HCAMEM_CAP_HUGE : HCAMEM_CAP_PAGES)) == 0) {
        return fail(EOPNOTSUPP, "%s has no mapping mode `%s`: use the other one (HCAMEM_MAPPING)",
                    from.path.c_str(), huge ? "huge" : "pages");
    }
    return 0;
}

} // namespace

int open_device_source(const hcamem_options& options, std::unique_ptr<source>& opened) {
    node from;
    std::uint32_t mapping = HCAMEM_MAP_PAGES;
    int result = open_node(options.hca, from);
    if (result == 0) {
        result = choose_mapping(options, from, mapping);
    }
    if (result == 0) {
        opened = std::make_unique<device_source>(std::move(from), options, mapping);
    }
    return result;
}

} // namespace hcamem::core
