// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "exporter.hpp"

#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <rdma/hcamem.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <filesystem>
#include <regex>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

namespace rxe {

using support::fail;
using support::must;
using support::UniqueFd;

namespace {

constexpr auto udmabuf_node = "/dev/udmabuf";
constexpr auto heap_node = "/dev/dma_heap/system";

unsigned char* map(int fd, std::size_t size, std::uint64_t offset = 0) {
    void* address =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (address == MAP_FAILED) {
        fail("mmap");
    }
    return static_cast<unsigned char*>(address);
}

UniqueFd open_node(const std::string& path) {
    return UniqueFd(must(open(path.c_str(), O_RDWR | O_CLOEXEC), path.c_str()));
}

} // namespace

std::ostream& operator<<(std::ostream& out, ExporterKind kind) {
    switch (kind) {
    case ExporterKind::udmabuf:
        return out << "udmabuf";
    case ExporterKind::heap:
        return out << "heap";
    case ExporterKind::hcamem:
        return out << "hcamem";
    }
    return out;
}

std::vector<ExporterKind> exporters() {
    std::vector<ExporterKind> kinds{ExporterKind::hcamem};
    for (const auto& [node, kind] : {std::pair(udmabuf_node, ExporterKind::udmabuf),
                                     std::pair(heap_node, ExporterKind::heap)}) {
        if (std::filesystem::exists(node)) {
            kinds.push_back(kind);
        }
    }
    return kinds;
}

Exporter::Exporter(ExporterKind kind, std::size_t size) : size_(size) {
    switch (kind) {
    case ExporterKind::udmabuf: {
        source_ =
            UniqueFd(must(memfd_create("exporter", MFD_CLOEXEC | MFD_ALLOW_SEALING), "memfd"));
        must(ftruncate(source_.get(), static_cast<off_t>(size)), "ftruncate");
        must(fcntl(source_.get(), F_ADD_SEALS, F_SEAL_SHRINK), "F_ADD_SEALS");
        udmabuf_create request{};
        request.memfd = static_cast<__u32>(source_.get());
        request.flags = UDMABUF_FLAGS_CLOEXEC;
        request.size = size;
        const UniqueFd node = open_node(udmabuf_node);
        dma_buf_ = UniqueFd(must(ioctl(node.get(), UDMABUF_CREATE, &request), "UDMABUF_CREATE"));
        memory_ = map(source_.get(), size);
        break;
    }
    case ExporterKind::heap: {
        dma_heap_allocation_data request{};
        request.len = size;
        request.fd_flags = O_RDWR | O_CLOEXEC;
        const UniqueFd node = open_node(heap_node);
        must(ioctl(node.get(), DMA_HEAP_IOCTL_ALLOC, &request), "DMA_HEAP_IOCTL_ALLOC");
        dma_buf_ = UniqueFd(static_cast<int>(request.fd));
        memory_ = map(dma_buf_.get(), size);
        break;
    }
    case ExporterKind::hcamem: {
        const support::Node node;
        hcamem_create request = support::create_request(size, {HCAMEM_MAPPING_HUGE});
        if (const int error = node.try_create(request)) {
            fail("HCAMEM_IOC_CREATE", error);
        }
        memory_ = map(node.fd(), size, request.offset);
        dma_buf_ = node.export_range(memory_, size);
        break;
    }
    }
}

void Exporter::drop() {
    dma_buf_.reset();
    source_.reset();
    if (memory_ != nullptr) {
        munmap(std::exchange(memory_, nullptr), size_);
    }
}

Exporter::~Exporter() {
    drop();
}

std::size_t dma_bufs() {
    const std::string text = support::read_text("/sys/kernel/debug/dma_buf/bufinfo");
    std::smatch match;
    if (!std::regex_search(text, match, std::regex("Total ([0-9]+) objects"))) {
        throw std::runtime_error("bufinfo has no total");
    }
    return std::stoul(match[1]);
}

} // namespace rxe
