// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Child processes that talk with the test over a socket and may run as somebody else.
#ifndef TESTS_SUPPORT_CHILD_HPP
#define TESTS_SUPPORT_CHILD_HPP

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "unique_fd.hpp"

namespace support {

/// One end of the conversation. Both throw when the other side has gone.
class Channel {
  public:
    explicit Channel(UniqueFd fd) : fd_(std::move(fd)) {}
    void send(std::int64_t value) const;
    [[nodiscard]] std::int64_t receive() const;
    void send_fd(int fd) const;
    [[nodiscard]] UniqueFd receive_fd() const;
    /// For poll().
    [[nodiscard]] int fd() const { return fd_.get(); }
    void close() { fd_.reset(); }

  private:
    UniqueFd fd_;
};

/// Who a child becomes before its body runs.
struct Identity {
    std::optional<uid_t> uid;         ///< this user and group, no supplementary groups
    std::optional<rlim_t> memlock;    ///< RLIMIT_MEMLOCK, soft and hard, bytes
    std::optional<bool> cap_ipc_lock; ///< keep it as another user, or drop it as root
};

/// How a child comes into being.
enum class Spawn {
    fork,      ///< by libc, with every pthread_atfork() hook
    raw_clone, ///< by the system call alone
};

const char* to_string(Spawn spawn);

/// fork() or the raw system call; 0 in the child; throws in the parent.
pid_t spawn_process(Spawn spawn);

/// Takes on the identity; throws if the kernel refuses.
void become(const Identity& identity);

/// A child that runs a body and exits with 0; an exception is printed and makes it 1.
class Child {
  public:
    using Body = std::function<void(Channel&)>;

    explicit Child(const Body& body) : Child(Identity{}, body) {}
    Child(const Identity& identity, const Body& body, Spawn spawn = Spawn::fork);
    Child(Child&& other) noexcept;
    Child& operator=(Child&&) = delete;
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    /// Kills it if it still runs.
    ~Child();

    [[nodiscard]] pid_t pid() const { return pid_; }
    Channel& channel() { return channel_; }
    void kill_now() const;
    /// Waits for its end; gives the status as waitpid() does. Throws if there is none to be had.
    int wait();

  private:
    Channel channel_;
    pid_t pid_ = -1;
    int status_ = 0;
};

/// Runs a body to its end. True if it exited with 0.
[[nodiscard]] bool succeeds_in_child(const Identity& identity, const Child::Body& body,
                                     Spawn spawn = Spawn::fork);

/// Runs a function in a child and gives back its number; throws if the child failed.
std::int64_t value_from_child(const Identity& identity,
                              const std::function<std::int64_t()>& function);

/// Throws in a child what an assertion would say in the test.
void require(bool condition, const std::string& what);

/// A user that no other test of this process uses, so that its charges start at 0.
uid_t fresh_user();

} // namespace support

#endif
