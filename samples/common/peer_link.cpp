// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "peer_link.hpp"

#include "program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace samples {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::uint32_t frame_magic = 0x68636d31; // "hcm1"
constexpr std::size_t longest_payload = 4096;
constexpr std::size_t longest_reason = 512; // of give_up(), bytes
// Waits are cut into pieces of this length, so that a signal between two looks is noticed.
constexpr std::chrono::milliseconds wait_slice(100);

failure peer_gone() {
    return {exit_code::peer, "the peer is gone: it closed the connection before the end"};
}

failure not_a_sample() {
    return {exit_code::mismatch, "what answers at the other end is not this sample"};
}

} // namespace

// As it travels: all fields big-endian.
struct peer_link::header {
    std::uint32_t magic;
    std::uint16_t type;
    std::uint16_t length; // of the payload behind it, bytes

    [[nodiscard]] frame_type kind() const { return static_cast<frame_type>(be16toh(type)); }
    [[nodiscard]] std::size_t payload() const { return be16toh(length); }
    [[nodiscard]] bool valid() const {
        return be32toh(magic) == frame_magic && payload() <= longest_payload;
    }
};

peer_link::peer_link(int descriptor, std::chrono::milliseconds timeout, bool known)
    : fd_(descriptor), timeout_(timeout), known_(known) {
    const int flags = fcntl(fd_, F_GETFL);
    if (flags < 0 || fcntl(fd_, F_SETFL, flags | O_NONBLOCK) < 0) {
        const int error = errno;
        close(fd_);
        throw failure(exit_code::unexpected, with_errno("cannot set up the connection", error));
    }
}

peer_link::~peer_link() {
    if (fd_ >= 0) {
        close(fd_);
    }
}

void peer_link::wait_for(short events, clock::time_point deadline) {
    for (;;) {
        throw_if_interrupted();
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now());
        if (left.count() <= 0) {
            throw failure(exit_code::peer, "the peer did not answer within " +
                                               std::to_string(timeout_.count() / 1000) + " s");
        }
        pollfd entry{fd_, events, 0};
        const int ready = poll(&entry, 1, static_cast<int>(std::min(left, wait_slice).count()));
        if (ready > 0) {
            return;
        }
        if (ready < 0 && errno != EINTR) {
            throw failure(exit_code::unexpected, with_errno("poll"));
        }
    }
}

void peer_link::read_exactly(void* data, std::size_t size, clock::time_point deadline) {
    auto* next = static_cast<std::byte*>(data);
    while (size > 0) {
        const ssize_t count = recv(fd_, next, size, MSG_DONTWAIT);
        if (count > 0) {
            next += count;
            size -= static_cast<std::size_t>(count);
        } else if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            wait_for(POLLIN, deadline);
        } else {
            throw peer_gone();
        }
    }
}

peer_link::header peer_link::read_header(clock::time_point deadline) {
    header head{};
    read_exactly(&head, sizeof(head), deadline);
    if (!head.valid()) {
        throw not_a_sample();
    }
    known_ = true;
    return head;
}

void peer_link::throw_give_up(const header& head) {
    std::string reason(head.payload(), '\0');
    read_exactly(reason.data(), reason.size(), clock::now() + timeout_);
    std::replace_if(
        reason.begin(), reason.end(), [](unsigned char c) { return c < ' '; }, ' ');
    throw failure(exit_code::peer, "the peer gave up: " + reason);
}

void peer_link::send(frame_type type, std::span<const std::byte> payload) {
    const header head{htobe32(frame_magic), htobe16(static_cast<std::uint16_t>(type)),
                      htobe16(static_cast<std::uint16_t>(payload.size()))};
    std::vector<std::byte> frame(sizeof(head) + payload.size());
    std::memcpy(frame.data(), &head, sizeof(head));
    std::copy(payload.begin(), payload.end(), frame.begin() + sizeof(head));

    known_ = true;
    const auto deadline = clock::now() + timeout_;
    std::span<const std::byte> rest(frame);
    while (!rest.empty()) {
        const ssize_t count = ::send(fd_, rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count >= 0) {
            rest = rest.subspan(static_cast<std::size_t>(count));
        } else if (errno == EAGAIN || errno == EINTR) {
            wait_for(POLLOUT, deadline);
        } else {
            check(); // it may have said why before it closed
            throw peer_gone();
        }
    }
}

std::vector<std::byte> peer_link::receive(frame_type type) {
    const auto deadline = clock::now() + timeout_;
    const header head = read_header(deadline);
    if (head.kind() == frame_type::give_up) {
        throw_give_up(head);
    }
    if (head.kind() != type) {
        throw not_a_sample();
    }
    std::vector<std::byte> payload(head.payload());
    read_exactly(payload.data(), payload.size(), deadline);
    return payload;
}

void peer_link::check() {
    pollfd entry{fd_, POLLIN | POLLRDHUP, 0};
    if (poll(&entry, 1, 0) <= 0) {
        return;
    }
    header head{};
    const ssize_t count = recv(fd_, &head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);
    if (count == static_cast<ssize_t>(sizeof(head)) && head.valid() &&
        head.kind() == frame_type::give_up) {
        throw_give_up(read_header(clock::now() + timeout_));
    }
    // A result that came early stays in the socket for receive().
    if (count == 0 || (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
        throw peer_gone();
    }
}

void peer_link::check_for(std::chrono::milliseconds grace) {
    const auto deadline = clock::now() + grace;
    do {
        throw_if_interrupted();
        check();
        pollfd entry{fd_, POLLRDHUP, 0};
        poll(&entry, 1, static_cast<int>(std::min(grace, wait_slice).count()));
    } while (clock::now() < deadline);
    check();
}

void peer_link::give_up(std::string_view reason) const noexcept {
    if (!known_) {
        return;
    }
    reason = reason.substr(0, longest_reason);
    const header head{htobe32(frame_magic),
                      htobe16(static_cast<std::uint16_t>(frame_type::give_up)),
                      htobe16(static_cast<std::uint16_t>(reason.size()))};
    std::array<char, sizeof(head) + longest_reason> frame{};
    std::memcpy(frame.data(), &head, sizeof(head));
    std::memcpy(frame.data() + sizeof(head), reason.data(), reason.size());
    // Whether it arrives does not matter: the peer also sees the connection close.
    [[maybe_unused]] const ssize_t count =
        ::send(fd_, frame.data(), sizeof(head) + reason.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

} // namespace samples
