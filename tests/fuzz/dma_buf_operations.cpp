// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// dma-bufs of parts of regions.
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "operations.hpp"

namespace fuzz {

namespace {

constexpr std::size_t most_exports = 12;
constexpr std::size_t most_areas = 40;

Export& pick(Process& process, Random& random) {
    return process.exports[random.below(process.exports.size())];
}

void close_one(Process& process, Random& random) {
    const std::uint64_t number = random.below(process.exports.size());
    process.note("close dma-buf", {static_cast<std::uint64_t>(process.exports[number].fd.get())});
    process.exports.erase(process.exports.begin() + static_cast<std::ptrdiff_t>(number));
}

/// Some bytes of an area, at no particular boundary.
hcamem_export some_request(const Area& area, Random& random) {
    hcamem_export request{};
    const Range range = some_of(area, random);
    const std::uint64_t skipped = random.one_in(2) ? 0 : random.below(range.bytes());
    request.addr = range.start + skipped;
    request.length = random.between(1, range.bytes() - skipped);
    request.fd = -1;
    return request;
}

/// The size that a dma-buf says it has.
std::uint64_t size_of(int fd) {
    const off_t end = lseek(fd, 0, SEEK_END);
    lseek(fd, 0, SEEK_SET);
    return static_cast<std::uint64_t>(end);
}

} // namespace

Outcome export_range(Process& process, Random& random) {
    if (process.areas.empty() || process.nodes.empty()) {
        return Outcome::idle;
    }
    if (process.exports.size() >= most_exports) {
        close_one(process, random);
    }
    const Area area = process.areas.pick(random);
    const Descriptor& node = process.nodes[random.below(process.nodes.size())];
    hcamem_export request = some_request(area, random);
    process.note("EXPORT", {request.addr, request.length});
    if (ioctl(node.fd.get(), HCAMEM_IOC_EXPORT, &request) != 0) {
        const bool usable = node.file->readable && node.file->writable;
        const int expected = !usable ? EBADF : area.memory->device() ? ENOMEM : EINVAL;
        process.allow("EXPORT", errno, {ENOMEM, EMFILE, ENFILE, expected});
        return Outcome::refused;
    }
    support::UniqueFd fd(request.fd);
    if (!area.memory->device()) {
        process.wrong(text("private memory of a child at ", hex(request.addr), " was exported"));
    }
    const std::uint64_t first = (request.addr - area.start) / page_bytes;
    const std::uint64_t end = request.addr + request.length - area.start;
    const std::size_t pages = (end + page_bytes - 1) / page_bytes - first;
    if (request.offset != request.addr % page_bytes || size_of(fd.get()) != pages * page_bytes ||
        (fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) == 0) {
        process.wrong(text("EXPORT of ", request.length, " bytes at ", hex(request.addr),
                           " gives offset ", request.offset, " in a dma-buf of ", size_of(fd.get()),
                           " bytes"));
    }
    process.exports.push_back({std::move(fd), area.memory, area.first + first, pages});
    return Outcome::done;
}

Outcome export_badly(Process& process, Random& random) {
    Descriptor* node = process.writable_node(random);
    if (process.areas.empty() || node == nullptr) {
        return Outcome::idle;
    }
    const Area area = process.areas.pick(random);
    hcamem_export request = some_request(area, random);
    switch (random.below(5)) {
    case 0:
        request.length = random.one_of<std::uint64_t>(
            {0, ~std::uint64_t{0}, ~request.addr + 1, std::uint64_t{1} << 63});
        break;
    case 1:
        request.flags = static_cast<std::uint32_t>(random.next() | 1);
        break;
    case 2:
        request.addr = reinterpret_cast<std::uintptr_t>(&request);
        break;
    case 3:
        request.addr = random.one_of<std::uint64_t>({0, 0xffff800000000000U, ~std::uint64_t{0}});
        break;
    default:
        // More than all regions together: it runs into something that is not the driver's.
        request.length = std::uint64_t{1} << 30;
        break;
    }
    process.note("EXPORT badly", {request.addr, request.length, request.flags});
    if (ioctl(node->fd.get(), HCAMEM_IOC_EXPORT, &request) == 0) {
        process.wrong(text("EXPORT of ", request.length, " bytes at ", hex(request.addr),
                           " with flags ", request.flags, " worked"));
    }
    process.allow("EXPORT badly", errno, {EINVAL, ENOMEM, EMFILE, ENFILE});
    return Outcome::done;
}

Outcome map_export(Process& process, Random& random) {
    if (process.exports.empty()) {
        return Outcome::idle;
    }
    if (process.areas.size() >= most_areas) {
        const Area area = process.areas.pick(random);
        process.drop({area.start, area.pages});
    }
    const Export& dma_buf = pick(process, random);
    const std::size_t skipped = random.one_in(2) ? 0 : random.below(dma_buf.pages);
    std::size_t pages = random.between(1, dma_buf.pages - skipped);
    int prot =
        random.one_of({PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE});
    int flags = MAP_SHARED | random.one_of({0, 0, MAP_POPULATE});
    const int badness = static_cast<int>(random.below(24));
    switch (badness) {
    case 0:
        pages = dma_buf.pages - skipped + 1;
        break;
    case 1:
        prot |= PROT_EXEC;
        break;
    case 2:
        flags = MAP_PRIVATE;
        break;
    default:
        break;
    }
    const Range target{random.one_in(3) ? process.arena.somewhere(pages, random) : 0, pages};
    flags |= target.start != 0 ? MAP_FIXED : 0;
    process.note("mmap dma-buf", {target.start, pages, static_cast<std::uint64_t>(prot), skipped});
    void* at = mmap(pointer(target.start), target.bytes(), prot, flags, dma_buf.fd.get(),
                    static_cast<off_t>(skipped * page_bytes));
    const int error = errno;
    if (target.start != 0) {
        process.areas.remove(target);
        if (at == MAP_FAILED) {
            process.arena.reserve(target);
        }
    }
    if (at == MAP_FAILED) {
        if (badness <= 2) {
            process.allow("mmap of a dma-buf, badly", error, {EINVAL, EPERM, ENOMEM, EAGAIN});
        } else {
            process.allow("mmap of a dma-buf", error, {ENOMEM, EAGAIN, ENFILE});
        }
        return Outcome::refused;
    }
    if (badness <= 2) {
        process.wrong(text("a dma-buf of ", dma_buf.pages, " pages was mapped from ", skipped,
                           " on, ", pages, " pages, prot ", prot, ", flags ", flags));
    }
    Area area;
    area.start = reinterpret_cast<std::uintptr_t>(at);
    area.pages = pages;
    area.prot = prot;
    area.memory = dma_buf.memory;
    area.first = dma_buf.first + skipped;
    area.dontfork = dma_buf.memory->fork() == HCAMEM_FORK_POLICY_DONTCOPY;
    process.areas.add(area);
    process.verify(area, random);
    return Outcome::done;
}

Outcome close_export(Process& process, Random& random) {
    if (process.exports.empty()) {
        return Outcome::idle;
    }
    close_one(process, random);
    return Outcome::done;
}

Outcome call_dma_buf(Process& process, Random& random) {
    if (process.exports.empty()) {
        return Outcome::idle;
    }
    const Export& dma_buf = pick(process, random);
    const int fd = dma_buf.fd.get();
    process.note("dma-buf calls", {static_cast<std::uint64_t>(fd)});
    switch (random.below(5)) {
    case 0: {
        dma_buf_sync sync{DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW};
        if (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync) != 0) {
            process.allow("DMA_BUF_IOCTL_SYNC", errno, {EINTR, EAGAIN});
        }
        sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW;
        if (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync) != 0) {
            process.allow("DMA_BUF_IOCTL_SYNC", errno, {EINTR, EAGAIN});
        }
        break;
    }
    case 1:
        if (ioctl(fd, DMA_BUF_SET_NAME_B, "fuzz") != 0) {
            process.allow("DMA_BUF_SET_NAME", errno, {ENOMEM});
        }
        break;
    case 2: {
        pollfd polled{fd, POLLIN | POLLOUT, 0};
        if (poll(&polled, 1, 0) < 0) {
            process.allow("poll of a dma-buf", errno, {ENOMEM});
        }
        break;
    }
    case 3: {
        std::array<std::uint64_t, 8> garbage{random.next(), random.next()};
        const unsigned long request = 'b' << _IOC_TYPESHIFT | random.below(1UL << 8) |
                                      random.below(4) << _IOC_DIRSHIFT |
                                      random.below(sizeof garbage) << _IOC_SIZESHIFT;
        if (ioctl(fd, request, garbage.data()) == 0) {
            return Outcome::done;
        }
        process.allow("garbage to a dma-buf", errno,
                      {ENOTTY, EINVAL, EFAULT, ENOMEM, EBADF, EMFILE, ENFILE, EINTR});
        break;
    }
    default: {
        char byte = 0;
        if (read(fd, &byte, 1) != -1 || write(fd, &byte, 1) != -1) {
            process.wrong("bytes were read from or written to a dma-buf's descriptor");
        }
        if (size_of(fd) != dma_buf.pages * page_bytes) {
            process.wrong("a dma-buf's size has changed");
        }
        break;
    }
    }
    return Outcome::done;
}

} // namespace fuzz
