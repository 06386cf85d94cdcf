// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Open files of a node: descriptors, events, and ioctls that are not meant to work.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "operations.hpp"

namespace fuzz {

namespace {

constexpr std::size_t most_nodes = 8;

void close_one(Process& process, Random& random) {
    const std::uint64_t number = random.below(process.nodes.size());
    process.note("close", {static_cast<std::uint64_t>(process.nodes[number].fd.get())});
    process.nodes.erase(process.nodes.begin() + static_cast<std::ptrdiff_t>(number));
}

/// An errno, or 0.
int call(int fd, unsigned long request, std::uint64_t argument) {
    return ioctl(fd, request, argument) < 0 ? errno : 0;
}

void check_event(Process& process, const hcamem_event& event) {
    const bool known = event.type == HCAMEM_EVENT_LOW || event.type == HCAMEM_EVENT_CRITICAL;
    if (!known || event.reserved != 0 || event.wanted == 0 || event.wanted % page_bytes != 0) {
        process.wrong(text("an event of type ", event.type, ", reserved ", event.reserved,
                           ", wanted ", event.wanted));
    }
}

} // namespace

Outcome open_node(Process& process, Random& random) {
    if (process.nodes.size() >= most_nodes) {
        close_one(process, random);
    }
    const std::string& path = process.setting().nodes[random.below(process.setting().nodes.size())];
    const int access = random.one_of({O_RDWR, O_RDWR, O_RDWR, O_RDWR, O_RDONLY, O_WRONLY});
    const int extra = random.one_of({0, 0, O_NONBLOCK, O_APPEND, O_TRUNC, O_NOCTTY, O_DIRECTORY});
    const int flags = access | extra | (random.one_in(2) ? O_CLOEXEC : 0);
    process.note("open", {static_cast<std::uint64_t>(flags)});
    support::UniqueFd fd(open(path.c_str(), flags));
    if (!fd.valid()) {
        process.allow("open", errno,
                      {ENOMEM, EMFILE, ENFILE, extra == O_DIRECTORY ? ENOTDIR : ENOMEM});
        return Outcome::refused;
    }
    auto file = std::make_shared<OpenFile>();
    file->readable = access != O_WRONLY;
    file->writable = access != O_RDONLY;
    file->nonblocking = extra == O_NONBLOCK;
    process.nodes.push_back({std::move(fd), std::move(file)});
    return Outcome::done;
}

Outcome close_node(Process& process, Random& random) {
    if (process.nodes.empty()) {
        return Outcome::idle;
    }
    close_one(process, random);
    return Outcome::done;
}

Outcome duplicate_node(Process& process, Random& random) {
    if (process.nodes.empty() || process.nodes.size() >= most_nodes) {
        return Outcome::idle;
    }
    const Descriptor& node = process.nodes[random.below(process.nodes.size())];
    process.note("dup", {static_cast<std::uint64_t>(node.fd.get())});
    support::UniqueFd fd(random.one_in(2) ? dup(node.fd.get())
                                          : fcntl(node.fd.get(), F_DUPFD_CLOEXEC, 0));
    if (!fd.valid()) {
        process.allow("dup", errno, {EMFILE, ENOMEM});
        return Outcome::refused;
    }
    process.nodes.push_back({std::move(fd), node.file});
    return Outcome::done;
}

Outcome ask_info(Process& process, Random&) {
    if (process.nodes.empty()) {
        return Outcome::idle;
    }
    process.verify_usage();
    return Outcome::done;
}

Outcome await_event(Process& process, Random& random) {
    if (process.nodes.empty()) {
        return Outcome::idle;
    }
    const Descriptor& node = process.nodes[random.below(process.nodes.size())];
    process.note("poll and read", {static_cast<std::uint64_t>(node.fd.get())});
    pollfd polled{node.fd.get(), POLLIN, 0};
    const int ready = poll(&polled, 1, static_cast<int>(random.below(3)));
    if (ready < 0 || (polled.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
        process.wrong(text("poll() gives ", ready, " with events ", polled.revents));
    }

    // A read that finds nothing would wait; a timer ends that.
    const itimerval soon{{0, 1000}, {0, 1000}};
    const itimerval never{};
    const bool block = random.one_in(4);
    if (!block && !node.file->nonblocking && ready == 0) {
        return Outcome::done;
    }
    if (block) {
        setitimer(ITIMER_REAL, &soon, nullptr);
    }
    hcamem_event event{};
    const std::size_t size = random.one_of<std::size_t>({sizeof event, sizeof event, 64, 8, 0});
    std::array<unsigned char, 64> buffer{};
    const ssize_t got = read(node.fd.get(), buffer.data(), size);
    const int error = got < 0 ? errno : 0;
    if (block) {
        setitimer(ITIMER_REAL, &never, nullptr);
    }
    if (error != 0) {
        process.allow("read", error, {EINVAL, EAGAIN, EINTR, EBADF});
        return Outcome::refused;
    }
    // A file that is not open for reading says EBADF; one byte less would be half an event.
    if (got != static_cast<ssize_t>(sizeof event)) {
        process.wrong(text("read() of ", size, " bytes gives ", got));
    }
    std::memcpy(&event, buffer.data(), sizeof event);
    check_event(process, event);
    return Outcome::done;
}

Outcome seek_node(Process& process, Random& random) {
    if (process.nodes.empty()) {
        return Outcome::idle;
    }
    const int fd = process.nodes[random.below(process.nodes.size())].fd.get();
    process.note("lseek", {static_cast<std::uint64_t>(fd)});
    if (lseek(fd, static_cast<off_t>(random.next()),
              random.one_of({SEEK_SET, SEEK_CUR, SEEK_END})) != -1) {
        process.wrong("the position of a node was changed");
    }
    char byte = 0;
    if (write(fd, &byte, 1) != -1 || pread(fd, &byte, 1, 0) != -1) {
        process.wrong("bytes were written to or read from a node");
    }
    return Outcome::done;
}

Outcome send_garbage(Process& process, Random& random) {
    if (process.nodes.empty()) {
        return Outcome::idle;
    }
    const int fd = process.nodes[random.below(process.nodes.size())].fd.get();
    std::array<std::uint64_t, 64> buffer{};
    for (std::uint64_t& word : buffer) {
        word = random.one_in(2) ? random.next() : 0;
    }
    const auto here = reinterpret_cast<std::uintptr_t>(buffer.data());
    const std::uint64_t argument =
        random.one_of<std::uint64_t>({here, here, here, here + 1, 0, 1, random.next(),
                                      0xffff800000000000U, ~std::uint64_t{0} - 8});
    const unsigned number =
        static_cast<unsigned>(random.one_in(4) ? random.below(256) : random.below(4));
    const unsigned size = static_cast<unsigned>(random.one_of<std::uint64_t>(
        {0, 1, 8, 39, 40, 41, 256, sizeof buffer, random.below(sizeof buffer)}));
    const unsigned direction = static_cast<unsigned>(random.below(4));
    // Not one of the types that the kernel handles for every file.
    const unsigned type = random.one_in(8) ? HCAMEM_IOC_MAGIC + 1 : HCAMEM_IOC_MAGIC;
    const unsigned long request = (static_cast<unsigned long>(direction) << _IOC_DIRSHIFT) |
                                  (type << _IOC_TYPESHIFT) | (number << _IOC_NRSHIFT) |
                                  (static_cast<unsigned long>(size) << _IOC_SIZESHIFT);
    process.note("garbage ioctl", {request, argument});
    const int error = call(fd, request, argument);
    // By chance it may be a request that is right; what it made goes with the file.
    process.allow("garbage ioctl", error,
                  {ENOTTY, EINVAL, EFAULT, E2BIG, EBADF, EDQUOT, EAGAIN, ENOMEM, ENOSPC, EACCES});
    return error == 0 ? Outcome::done : Outcome::refused;
}

Outcome read_fdinfo(Process& process, Random& random) {
    if (process.nodes.empty()) {
        return Outcome::idle;
    }
    const int fd = process.nodes[random.below(process.nodes.size())].fd.get();
    process.note("fdinfo", {static_cast<std::uint64_t>(fd)});
    const support::UniqueFd file(
        open(text("/proc/self/fdinfo/", fd).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) {
        process.allow("fdinfo", errno, {ENOMEM, EMFILE, ENFILE});
        return Outcome::refused;
    }
    std::array<char, 1024> content{};
    const ssize_t got = read(file.get(), content.data(), content.size() - 1);
    if (got < 0) {
        process.allow("fdinfo", errno, {ENOMEM});
        return Outcome::refused;
    }
    if (std::strstr(content.data(), "hcamem-node:") == nullptr) {
        process.wrong("fdinfo does not name the node");
    }
    return Outcome::done;
}

} // namespace fuzz
