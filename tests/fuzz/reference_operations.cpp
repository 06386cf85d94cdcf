// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// References that outlive mappings: pages in pipes, pages registered with io_uring, descriptors in
// sockets and in other processes.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "operations.hpp"

namespace fuzz {

namespace {

constexpr std::size_t most_pipes = 6;
constexpr std::size_t most_rings = 3;
constexpr std::size_t most_received = 16;
constexpr std::size_t pipe_pages = 8; // a pipe holds 16

/// What goes with a descriptor.
struct Letter {
    enum class Kind : std::uint32_t { node, dma_buf };
    Kind kind;
    std::uint32_t fork;
    std::uint64_t key;
    std::uint64_t first, pages; ///< of the region
    std::uint64_t nonblocking, readable, writable;
};

union Control {
    cmsghdr alignment;
    std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

/// 0 or an errno.
int post(int mailbox, Letter letter, int fd) {
    iovec part{&letter, sizeof letter};
    Control control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return sendmsg(mailbox, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

/// The descriptor, or an invalid one with errno set.
support::UniqueFd fetch(int mailbox, Letter& letter) {
    iovec part{&letter, sizeof letter};
    Control control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    if (recvmsg(mailbox, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0) {
        return {};
    }
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS) {
        errno = EMFILE; // the kernel had no room for it
        return {};
    }
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return support::UniqueFd(fd);
}

/// Whether another process can make sense of the pages: none was being written when its writer
/// was killed.
bool all_known(const Export& dma_buf) {
    for (std::size_t page = dma_buf.first; page < dma_buf.first + dma_buf.pages; ++page) {
        if (dma_buf.memory->version(page) == unknown && !dma_buf.memory->foreign()) {
            return false;
        }
    }
    return true;
}

} // namespace

Outcome splice_pages(Process& process, Random& random) {
    if (process.areas.empty()) {
        return Outcome::idle;
    }
    if (process.pipes.size() >= most_pipes) {
        drain_pipe(process, random);
    }
    const Area area = process.areas.pick(random);
    if (!area.memory->device() || area.prot == PROT_NONE) {
        return Outcome::idle; // private pages are copied when either side writes
    }
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
        process.allow("pipe", errno, {EMFILE, ENFILE, ENOMEM});
        return Outcome::refused;
    }
    Pipe pipe{support::UniqueFd(ends[0]), support::UniqueFd(ends[1]), area.memory, 0, 0};
    const std::size_t skipped = random.below(area.pages);
    pipe.first = area.first + skipped;
    pipe.pages = random.between(1, std::min(area.pages - skipped, pipe_pages));
    const iovec part{pointer(area.start + skipped * page_bytes), pipe.pages * page_bytes};
    process.note("vmsplice", {area.start + skipped * page_bytes, pipe.pages});
    const ssize_t given =
        vmsplice(pipe.write_end.get(), &part, 1, random.one_of({0U, unsigned{SPLICE_F_NONBLOCK}}));
    if (given < 0) {
        process.allow("vmsplice", errno, {EFAULT, ENOMEM, EAGAIN});
        return Outcome::refused;
    }
    if (given % static_cast<ssize_t>(page_bytes) != 0) {
        process.wrong(text("vmsplice() of whole pages took ", given, " bytes"));
    }
    pipe.pages = static_cast<std::size_t>(given) / page_bytes;
    process.pipes.push_back(std::move(pipe));
    return Outcome::done;
}

Outcome drain_pipe(Process& process, Random& random) {
    if (process.pipes.empty()) {
        return Outcome::idle;
    }
    const auto chosen =
        process.pipes.begin() + static_cast<std::ptrdiff_t>(random.below(process.pipes.size()));
    const Pipe pipe = std::move(*chosen);
    process.pipes.erase(chosen);
    process.note("drain", {pipe.memory->key(), pipe.first, pipe.pages});
    std::vector<unsigned char> bytes(page_bytes);
    // Some pages go unread, with the pipe.
    for (std::size_t page = 0; page < random.between(0, pipe.pages); ++page) {
        const ssize_t got = read(pipe.read_end.get(), bytes.data(), bytes.size());
        if (got != static_cast<ssize_t>(page_bytes)) {
            process.wrong(text("a pipe with pages in it gave ", got));
        }
        if (const auto what = check_copy(bytes, *pipe.memory, pipe.first + page, 0)) {
            process.wrong("of a page in a pipe, " + *what);
        }
    }
    return Outcome::done;
}

Outcome pin_pages(Process& process, Random& random) {
    if (process.areas.empty() || process.rings.size() >= most_rings) {
        return Outcome::idle;
    }
    const Area area = process.areas.pick(random);
    io_uring_params parameters{};
    process.note("io_uring", {area.start, area.pages});
    support::UniqueFd ring(static_cast<int>(syscall(SYS_io_uring_setup, 1, &parameters)));
    if (!ring.valid()) {
        process.allow("io_uring_setup", errno, {ENOMEM, EPERM, EMFILE, ENFILE, ENOSYS});
        return Outcome::refused;
    }
    const Range range = some_of(area, random);
    const iovec buffer{pointer(range.start), range.bytes()};
    if (syscall(SYS_io_uring_register, ring.get(), IORING_REGISTER_BUFFERS, &buffer, 1) != 0) {
        process.allow("io_uring_register", errno, {EFAULT, ENOMEM, EOPNOTSUPP, EINVAL, EPERM});
        return Outcome::refused;
    }
    process.rings.push_back(std::move(ring));
    return Outcome::done;
}

Outcome unpin_pages(Process& process, Random& random) {
    if (process.rings.empty()) {
        return Outcome::idle;
    }
    process.note("close io_uring", {});
    process.rings.erase(process.rings.begin() +
                        static_cast<std::ptrdiff_t>(random.below(process.rings.size())));
    return Outcome::done;
}

Outcome send_descriptor(Process& process, Random& random) {
    const std::vector<int>& mailboxes = process.setting().mailboxes;
    const int mailbox = mailboxes[random.below(mailboxes.size())];
    Letter letter{};
    int fd = -1;
    if (random.one_in(3) && !process.nodes.empty()) {
        const Descriptor& node = process.nodes[random.below(process.nodes.size())];
        letter.kind = Letter::Kind::node;
        letter.nonblocking = node.file->nonblocking;
        letter.readable = node.file->readable;
        letter.writable = node.file->writable;
        fd = node.fd.get();
    } else if (!process.exports.empty()) {
        const Export& dma_buf = process.exports[random.below(process.exports.size())];
        if (!all_known(dma_buf)) {
            return Outcome::idle;
        }
        dma_buf.memory->freeze();
        letter.kind = Letter::Kind::dma_buf;
        letter.fork = dma_buf.memory->fork();
        letter.key = dma_buf.memory->key();
        letter.first = dma_buf.first;
        letter.pages = dma_buf.pages;
        fd = dma_buf.fd.get();
    } else {
        return Outcome::idle;
    }
    process.note("send descriptor", {static_cast<std::uint64_t>(fd), letter.key, letter.pages});
    if (const int error = post(mailbox, letter, fd)) {
        process.allow("send descriptor", error,
                      {EAGAIN, ENOBUFS, ETOOMANYREFS, ENOMEM, ECONNREFUSED, EPIPE});
        return Outcome::refused;
    }
    return Outcome::done;
}

Outcome receive_descriptor(Process& process, Random&) {
    Letter letter{};
    process.note("receive descriptor", {});
    support::UniqueFd fd = fetch(process.setting().mailbox, letter);
    if (!fd.valid()) {
        process.allow("receive descriptor", errno, {EAGAIN, EMFILE, ENOMEM});
        return Outcome::refused;
    }
    if (letter.kind == Letter::Kind::node) {
        if (process.nodes.size() >= most_received) {
            process.nodes.erase(process.nodes.begin());
        }
        auto file = std::make_shared<OpenFile>();
        file->nonblocking = letter.nonblocking != 0;
        file->readable = letter.readable != 0;
        file->writable = letter.writable != 0;
        process.nodes.push_back({std::move(fd), std::move(file)});
        return Outcome::done;
    }
    if (process.exports.size() >= most_received) {
        process.exports.erase(process.exports.begin());
    }
    // It may be memory of this very process, which then knows it under two names.
    auto memory =
        std::make_shared<Memory>(letter.key, letter.first + letter.pages, Memory::Kind::device,
                                 static_cast<hcamem_fork>(letter.fork));
    memory->make_foreign();
    process.exports.push_back({std::move(fd), std::move(memory), letter.first, letter.pages});
    return Outcome::done;
}

} // namespace fuzz
