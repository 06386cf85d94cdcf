// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "shared/shared_memory.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "error/message.h"
#include "heap/size_class.h"
#include "os/sealed_memory.h"
#include "source/source.h"

namespace hcamem::core {
namespace {

/// More than the machine has would not fail when it is asked for, but when it is used.
int check_machine(std::size_t bytes) noexcept {
    const std::uint64_t total = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                                static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    if (bytes <= total) {
        return 0;
    }
    return fail(ENOMEM, "a shared heap of %s: the machine has only %s of memory",
                size_text(bytes).c_str(), size_text(total).c_str());
}

/// The size that the memory behind a descriptor has for ever; 0: it is not such memory.
std::size_t fixed_size(int descriptor, const heap_traits& traits) noexcept {
    if (traits.source == HCAMEM_MEMORY) {
        return is_sealed_memory(descriptor, traits.bytes) ? traits.bytes : 0;
    }
    const off_t end = lseek(descriptor, 0, SEEK_END); // works on dma-bufs too
    return end > 0 ? static_cast<std::size_t>(end) : 0;
}

} // namespace

int shared_memory::reserve(std::size_t bytes) noexcept {
    if (range_.reserve(bytes, slab_unit) != 0) {
        return fail(ENOMEM,
                    "%s of address space for a shared heap are not to be had: make it smaller, or "
                    "raise the limit (ulimit -v)",
                    size_text(bytes).c_str());
    }
    return 0;
}

int shared_memory::create(const hcamem_options& options, std::size_t bytes, heap_traits& traits) {
    hcamem_options shared = options;
    shared.fork = HCAMEM_FORK_SHARE;
    std::unique_ptr<source> from;
    int result = open_source(shared, from);
    if (result == 0 && from->kind() == HCAMEM_MEMORY) {
        result = check_machine(bytes);
    }
    if (result == 0) {
        result = reserve(bytes);
    }
    if (result == 0) {
        result = from->map_shared(range_.data(), bytes, file_);
    }
    if (result == 0 && !identify(file_.descriptor(), traits.memory)) {
        result = fail(errno, "the shared heap's memory cannot be told apart: %s",
                      strerrordesc_np(errno));
    }
    if (result == 0 && (options.flags & HCAMEM_OPT_PREFAULT) != 0) {
        make_present(range_.data(), bytes);
    }
    if (result != 0) {
        close();
        return result;
    }
    is_dmabuf_ = from->kind() == HCAMEM_DEVICE;
    pinnable_ = from->pinnable();
    traits.bytes = bytes;
    traits.source = from->kind();
    traits.flags |= pinnable_ ? heap_traits::pinnable : 0U;
    return 0;
}

int shared_memory::join(int descriptor, const heap_traits& traits) noexcept {
    file_identity found;
    if (!identify(descriptor, found)) {
        return fail(EBADMSG, "descriptor %d is not the memory of a shared heap: %s", descriptor,
                    strerrordesc_np(errno));
    }
    if (found != traits.memory) {
        return fail(EXDEV,
                    "descriptor %d is not the memory of this shared heap but another's: control "
                    "segment and memory go together",
                    descriptor);
    }
    const bool sensible = traits.bytes != 0 && traits.bytes % slab_unit == 0 &&
                          (traits.source == HCAMEM_MEMORY || traits.source == HCAMEM_DEVICE);
    if (!sensible || fixed_size(descriptor, traits) != traits.bytes) {
        return fail(EBADMSG,
                    "descriptor %d is not the memory of a shared heap: not of %zu bytes, or its "
                    "size may change",
                    descriptor, static_cast<std::size_t>(traits.bytes));
    }
    file memory(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (!memory) {
        return fail(errno, "no descriptor for a shared heap: %s", strerrordesc_np(errno));
    }
    const int result = reserve(traits.bytes);
    if (result != 0) {
        return result;
    }
    if (mmap(range_.data(), traits.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             memory.descriptor(), 0) == MAP_FAILED) {
        const int error = errno;
        close();
        return fail(error, "mmap of a shared heap of %s: %s", size_text(traits.bytes).c_str(),
                    strerrordesc_np(error));
    }
    file_ = std::move(memory);
    is_dmabuf_ = traits.source == HCAMEM_DEVICE;
    pinnable_ = traits.has(heap_traits::pinnable);
    return 0;
}

void shared_memory::close() noexcept {
    range_.reset();
    file_ = file();
}

int shared_memory::export_dmabuf(const void* address, std::size_t /*bytes*/,
                                 std::uint64_t& offset) noexcept {
    if (!is_dmabuf_) {
        return fail(EOPNOTSUPP,
                    "ordinary memory cannot be exported as a dma-buf: this needs the device");
    }
    const int descriptor = fcntl(file_.descriptor(), F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) {
        return fail(errno, "no descriptor for the dma-buf of a shared heap: %s",
                    strerrordesc_np(errno));
    }
    offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - range_.data());
    return descriptor;
}

} // namespace hcamem::core
