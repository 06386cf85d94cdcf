// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// How the two sides find each other: listen, connect, or a pair within one machine.
#include "peer_link.hpp"

#include "program.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace samples {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds wait_slice(100);

class descriptor {
  public:
    explicit descriptor(int fd = -1) : fd_(fd) {}
    ~descriptor() {
        if (fd_ >= 0) {
            close(fd_);
        }
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    descriptor(descriptor&& other) noexcept : fd_(other.release()) {}
    descriptor& operator=(descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_;
};

using address_list = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

address_list resolve(const char* host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | (host == nullptr ? AI_PASSIVE : 0);
    addrinfo* found = nullptr;
    const int error = getaddrinfo(host, std::to_string(port).c_str(), &hints, &found);
    if (error != 0) {
        throw failure(exit_code::no_connection, std::string("cannot find host '") +
                                                    (host != nullptr ? host : "any") +
                                                    "': " + gai_strerror(error));
    }
    return {found, freeaddrinfo};
}

// Waits for `events`; false when the deadline passed.
bool wait_ready(int fd, short events, clock::time_point deadline) {
    for (;;) {
        throw_if_interrupted();
        const auto left = std::chrono::duration_cast<milliseconds>(deadline - clock::now());
        if (left.count() <= 0) {
            return false;
        }
        pollfd entry{fd, events, 0};
        if (poll(&entry, 1, static_cast<int>(std::min(left, wait_slice).count())) > 0) {
            return true;
        }
    }
}

descriptor listen_on(std::uint16_t port) {
    const std::string what = "cannot listen on TCP port " + std::to_string(port);
    const address_list addresses = resolve(nullptr, port);
    int error = EADDRNOTAVAIL;
    // IPv6 first: such a socket takes IPv4 clients too.
    for (const int family : {AF_INET6, AF_INET}) {
        for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
            if (each->ai_family != family) {
                continue;
            }
            descriptor socket_fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            const int on = 1;
            const int off = 0;
            if (!socket_fd) {
                error = errno;
                continue;
            }
            setsockopt(socket_fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
            if (family == AF_INET6) {
                setsockopt(socket_fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
            }
            if (bind(socket_fd.get(), each->ai_addr, each->ai_addrlen) == 0 &&
                listen(socket_fd.get(), SOMAXCONN) == 0) {
                return socket_fd;
            }
            error = errno;
            if (error == EADDRINUSE) {
                throw failure(exit_code::no_connection, with_errno(what, error));
            }
        }
    }
    throw failure(exit_code::no_connection, with_errno(what, error));
}

// One attempt at one address; an errno, or 0 with the socket in `result`.
int try_connect(const addrinfo& address, clock::time_point deadline, descriptor& result) {
    descriptor socket_fd(
        socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
    if (!socket_fd) {
        return errno;
    }
    if (connect(socket_fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
        if (errno != EINPROGRESS && errno != EINTR) {
            return errno;
        }
        if (!wait_ready(socket_fd.get(), POLLOUT, deadline)) {
            return ETIMEDOUT;
        }
        int error = 0;
        socklen_t size = sizeof(error);
        if (getsockopt(socket_fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
            return errno;
        }
        if (error != 0) {
            return error;
        }
    }
    result = std::move(socket_fd);
    return 0;
}

peer_link link_over(descriptor socket_fd, milliseconds timeout) {
    const int on = 1; // frames are small and waited for
    setsockopt(socket_fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return {socket_fd.release(), timeout};
}

} // namespace

peer_listener::peer_listener(std::uint16_t port) : fd_(listen_on(port).release()) {}

peer_listener::~peer_listener() {
    close(fd_);
}

peer_link peer_listener::accept(milliseconds wait, milliseconds timeout) const {
    const auto deadline = clock::now() + wait;
    for (;;) {
        if (!wait_ready(fd_, POLLIN, deadline)) {
            throw failure(exit_code::no_connection,
                          "no client came within " + std::to_string(wait.count() / 1000) + " s");
        }
        descriptor socket_fd(accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
        if (socket_fd) {
            return link_over(std::move(socket_fd), timeout);
        }
        // A client that went away again is not this server's end.
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            throw failure(exit_code::no_connection, with_errno("cannot accept a client"));
        }
    }
}

peer_link accept_peer(std::uint16_t port, milliseconds wait, milliseconds timeout) {
    return peer_listener(port).accept(wait, timeout);
}

peer_link connect_peer(const std::string& host, std::uint16_t port, milliseconds wait,
                       milliseconds timeout) {
    const address_list addresses = resolve(host.c_str(), port);
    const auto deadline = clock::now() + wait;
    int error = 0;
    do {
        throw_if_interrupted();
        for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
            descriptor socket_fd;
            error = try_connect(*each, deadline, socket_fd);
            if (error == 0) {
                return link_over(std::move(socket_fd), timeout);
            }
        }
        std::this_thread::sleep_for(std::min(wait, wait_slice));
    } while (error == ECONNREFUSED && clock::now() < deadline);
    throw failure(exit_code::no_connection,
                  with_errno("cannot connect to " + host + " port " + std::to_string(port), error));
}

std::pair<int, int> make_descriptor_pair() {
    int descriptors[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, descriptors) != 0) {
        throw failure(exit_code::unexpected, with_errno("socketpair"));
    }
    return {descriptors[0], descriptors[1]};
}

} // namespace samples
