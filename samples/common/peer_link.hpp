// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The TCP connection between the two sides of a sample. It carries the addresses of the queue
// pairs before the run and the results after it; in between it tells that the peer is alive.
#ifndef SAMPLES_COMMON_PEER_LINK_HPP
#define SAMPLES_COMMON_PEER_LINK_HPP

#include "exit_codes.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace samples {

enum class frame_type : std::uint16_t { hello = 1, ready = 2, result = 3, give_up = 4 };

/// A connected stream socket that carries frames. No call waits longer than the timeout. Every
/// call throws failure(peer) when the peer is gone, or has given up, in which case its reason is
/// part of the message. Not thread safe.
class peer_link {
  public:
    /// `known`: what is at the other end is surely another sample. Else it is once it has sent a
    /// frame, or was sent one; until then give_up() tells it nothing, since bytes that it does not
    /// expect could lead another program astray.
    peer_link(int descriptor, std::chrono::milliseconds timeout, bool known = false);
    ~peer_link();
    peer_link(peer_link&& other) noexcept
        : fd_(std::exchange(other.fd_, -1)), timeout_(other.timeout_), known_(other.known_) {}
    peer_link& operator=(peer_link&&) = delete;

    void send(frame_type type, std::span<const std::byte> payload = {});

    /// Waits for the next frame, which must be of `type`.
    [[nodiscard]] std::vector<std::byte> receive(frame_type type);

    /// Returns at once if nothing speaks against the peer being there.
    void check();

    /// Like check(), but gives the news of a dying peer `grace` to arrive.
    void check_for(std::chrono::milliseconds grace);

    /// Tells the peer why this side ends early. Never throws and never waits.
    void give_up(std::string_view reason) const noexcept;

    [[nodiscard]] std::chrono::milliseconds timeout() const noexcept { return timeout_; }

  private:
    struct header;

    void wait_for(short events, std::chrono::steady_clock::time_point deadline);
    void read_exactly(void* data, std::size_t size, std::chrono::steady_clock::time_point deadline);
    [[nodiscard]] header read_header(std::chrono::steady_clock::time_point deadline);
    [[noreturn]] void throw_give_up(const header& head);

    int fd_;
    std::chrono::milliseconds timeout_;
    bool known_;
};

/// Server side, for as many clients as are accepted: listens on all addresses of this machine.
class peer_listener {
  public:
    /// Throws failure(no_connection) if the port is in use.
    explicit peer_listener(std::uint16_t port);
    ~peer_listener();
    peer_listener(const peer_listener&) = delete;
    peer_listener& operator=(const peer_listener&) = delete;

    /// Waits up to `wait` for the next client. Throws failure(no_connection) if nobody came.
    [[nodiscard]] peer_link accept(std::chrono::milliseconds wait,
                                   std::chrono::milliseconds timeout) const;

  private:
    int fd_;
};

/// Server side for one client.
[[nodiscard]] peer_link accept_peer(std::uint16_t port, std::chrono::milliseconds wait,
                                    std::chrono::milliseconds timeout);

/// Client side. A refused connection is tried again until `wait` is over, since the server may
/// still be starting. Throws failure(no_connection).
[[nodiscard]] peer_link connect_peer(const std::string& host, std::uint16_t port,
                                     std::chrono::milliseconds wait,
                                     std::chrono::milliseconds timeout);

/// Both ends of a connection within one machine, for a parent and the child it forks. The
/// descriptors; wrap each in a peer_link in its own process.
[[nodiscard]] std::pair<int, int> make_descriptor_pair();

} // namespace samples

#endif
