// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "shared/passing.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/uio.h>

#include "error/message.h"

namespace hcamem::core {
namespace {

// A stream socket carries descriptors only with bytes; these tell what they are.
using mark = std::array<char, 8>;
constexpr mark heap_mark{'h', 'c', 'a', 'm', 'h', 'e', 'a', 'p'};

constexpr std::size_t most_files = 8; // what is too many must be seen to be closed

template <std::size_t N>
struct alignas(cmsghdr) ancillary {
    std::array<unsigned char, CMSG_SPACE(N * sizeof(int))> bytes{};
};

int send_failed(int error) noexcept {
    return fail(error, "a shared heap cannot be sent: %s%s", strerrordesc_np(error),
                error == EINVAL || error == ENOTSOCK || error == EOPNOTSUPP
                    ? " (only a UNIX socket can pass descriptors)"
                    : "");
}

int receive_failed(int error) noexcept {
    if (error == EAGAIN || error == EWOULDBLOCK) {
        return fail(ETIMEDOUT, "no shared heap arrived: the socket does not wait (any longer)");
    }
    return fail(error, "a shared heap cannot be received: %s", strerrordesc_np(error));
}

/// Takes over all descriptors of the message; how many there are.
std::size_t take_files(msghdr& message, std::array<file, most_files>& taken) noexcept {
    std::size_t count = 0;
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
         each = CMSG_NXTHDR(&message, each)) {
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const std::size_t here = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t index = 0; index < here && count < most_files; ++index) {
            int descriptor = -1;
            std::memcpy(&descriptor, CMSG_DATA(each) + index * sizeof(int), sizeof descriptor);
            taken[count++] = file(descriptor);
        }
    }
    return count;
}

} // namespace

int send_files(int socket, int control, int memory) noexcept {
    mark text = heap_mark;
    iovec payload{text.data(), text.size()};
    ancillary<2> rights;
    msghdr message{};
    message.msg_iov = &payload;
    message.msg_iovlen = 1;
    message.msg_control = rights.bytes.data();
    message.msg_controllen = rights.bytes.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(2 * sizeof(int));
    const std::array<int, 2> both{control, memory};
    std::memcpy(CMSG_DATA(header), both.data(), sizeof both);
    ssize_t sent = 0;
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? send_failed(errno) : 0;
}

int receive_files(int socket, heap_files& received) noexcept {
    mark text{};
    iovec payload{text.data(), text.size()};
    ancillary<most_files> rights;
    msghdr message{};
    message.msg_iov = &payload;
    message.msg_iovlen = 1;
    message.msg_control = rights.bytes.data();
    message.msg_controllen = rights.bytes.size();
    ssize_t length = 0;
    do {
        length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (length < 0 && errno == EINTR);
    if (length < 0) {
        return receive_failed(errno);
    }
    std::array<file, most_files> files;
    const std::size_t count = take_files(message, files); // closes them if they are not wanted
    if (length == 0 && count == 0) {
        return fail(ECONNRESET, "no shared heap arrived: the other side has closed the socket");
    }
    if (static_cast<std::size_t>(length) != text.size() || text != heap_mark || count != 2 ||
        (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0) {
        return fail(EBADMSG,
                    "what arrived on the socket is not a shared heap: %zd bytes with %zu "
                    "descriptors%s",
                    length, count,
                    (message.msg_flags & MSG_CTRUNC) != 0
                        ? " and more that could not be taken (is the limit of open files met?)"
                        : "");
    }
    received = {std::move(files[0]), std::move(files[1])};
    return 0;
}

} // namespace hcamem::core
