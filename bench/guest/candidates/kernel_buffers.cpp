// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "candidates/kernel_buffers.hpp"

#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "support/failure.hpp"
#include "support/guest.hpp"

namespace bench {

using support::must;

udmabuf_candidate::udmabuf_candidate(const support::Pd& pd, std::uint32_t driver_id)
    : dmabuf_candidate("memfd + /dev/udmabuf", pd, driver_id),
      device_(must(open("/dev/udmabuf", O_RDWR | O_CLOEXEC), "/dev/udmabuf")) {}

void udmabuf_candidate::prepare(std::size_t bytes) {
    // Its default of 64 is the administrator's to raise.
    if (bytes > 64 * support::MiB) {
        support::write_text("/sys/module/udmabuf/parameters/size_limit_mb",
                            std::to_string(bytes / support::MiB));
    }
}

std::byte* udmabuf_candidate::obtain(std::size_t bytes) {
    memory_ = support::UniqueFd(
        must(memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING), "memfd_create"));
    must(ftruncate(memory_.get(), static_cast<off_t>(bytes)), "ftruncate");
    must(fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_SHRINK), "F_ADD_SEALS");
    data_ = map(bytes, MAP_SHARED, memory_.get());
    bytes_ = bytes;
    return data_;
}

support::UniqueFd udmabuf_candidate::dmabuf(std::uint64_t& offset) {
    udmabuf_create request{};
    request.memfd = static_cast<std::uint32_t>(memory_.get());
    request.flags = UDMABUF_FLAGS_CLOEXEC;
    request.size = bytes_;
    offset = 0;
    return support::UniqueFd(
        must(ioctl(device_.get(), UDMABUF_CREATE, &request), "UDMABUF_CREATE"));
}

void udmabuf_candidate::release() {
    dmabuf_candidate::release();
    memory_.reset();
}

dma_heap_candidate::dma_heap_candidate(const support::Pd& pd, std::uint32_t driver_id)
    : dmabuf_candidate("/dev/dma_heap/system", pd, driver_id),
      heap_(must(open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC), "/dev/dma_heap/system")) {}

std::byte* dma_heap_candidate::obtain(std::size_t bytes) {
    dma_heap_allocation_data request{};
    request.len = bytes;
    request.fd_flags = O_RDWR | O_CLOEXEC;
    must(ioctl(heap_.get(), DMA_HEAP_IOCTL_ALLOC, &request), "DMA_HEAP_IOCTL_ALLOC");
    memory_ = support::UniqueFd(static_cast<int>(request.fd));
    data_ = map(bytes, MAP_SHARED, memory_.get());
    bytes_ = bytes;
    return data_;
}

support::UniqueFd dma_heap_candidate::dmabuf(std::uint64_t& offset) {
    offset = 0;
    return support::UniqueFd(must(fcntl(memory_.get(), F_DUPFD_CLOEXEC, 0), "F_DUPFD_CLOEXEC"));
}

void dma_heap_candidate::release() {
    dmabuf_candidate::release();
    memory_.reset();
}

} // namespace bench
