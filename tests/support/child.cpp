// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "child.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "failure.hpp"

namespace support {

namespace {

union ControlBuffer {
    cmsghdr alignment;
    char bytes[CMSG_SPACE(sizeof(int))];
};

void set_capability(unsigned capability, bool on) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
    must(syscall(SYS_capget, &header, data), "capget");
    auto& part = data[CAP_TO_INDEX(capability)];
    const __u32 bit = CAP_TO_MASK(capability);
    part.effective = on ? part.effective | bit : part.effective & ~bit;
    part.permitted = on ? part.permitted | bit : part.permitted & ~bit;
    must(syscall(SYS_capset, &header, data), "capset");
}

void become_user(uid_t uid, bool keep_ipc_lock) {
    must(setgroups(0, nullptr), "setgroups");
    must(setresgid(uid, uid, uid), "setresgid");
    must(prctl(PR_SET_KEEPCAPS, keep_ipc_lock ? 1 : 0, 0, 0, 0), "PR_SET_KEEPCAPS");
    must(setresuid(uid, uid, uid), "setresuid");
    if (keep_ipc_lock) {
        __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
        __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
        auto& part = data[CAP_TO_INDEX(CAP_IPC_LOCK)];
        part.effective = part.permitted = CAP_TO_MASK(CAP_IPC_LOCK);
        must(syscall(SYS_capset, &header, data), "capset");
    }
    // A change of user makes the process undumpable, and its /proc files root's.
    must(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "PR_SET_DUMPABLE");
}

} // namespace

void Channel::send(std::int64_t value) const {
    must(::send(fd_.get(), &value, sizeof value, MSG_NOSIGNAL), "send to the other process");
}

std::int64_t Channel::receive() const {
    std::int64_t value = 0;
    const ssize_t got = must(recv(fd_.get(), &value, sizeof value, 0), "receive");
    if (got != static_cast<ssize_t>(sizeof value)) {
        throw std::runtime_error("the other process is gone");
    }
    return value;
}

void Channel::send_fd(int fd) const {
    char byte = 0;
    iovec part{&byte, 1};
    ControlBuffer control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    must(sendmsg(fd_.get(), &message, MSG_NOSIGNAL), "send a descriptor");
}

UniqueFd Channel::receive_fd() const {
    char byte = 0;
    iovec part{&byte, 1};
    ControlBuffer control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    must(recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC), "receive a descriptor");
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS) {
        throw std::runtime_error("the other process sent no descriptor");
    }
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return UniqueFd(fd);
}

const char* to_string(Spawn spawn) {
    return spawn == Spawn::fork ? "fork" : "raw_clone";
}

pid_t spawn_process(Spawn spawn) {
    if (spawn == Spawn::fork) {
        return must(fork(), "fork");
    }
    return static_cast<pid_t>(must(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), "clone"));
}

void become(const Identity& identity) {
    if (identity.memlock) {
        const rlimit limit{*identity.memlock, *identity.memlock};
        must(setrlimit(RLIMIT_MEMLOCK, &limit), "RLIMIT_MEMLOCK");
    }
    if (identity.uid) {
        become_user(*identity.uid, identity.cap_ipc_lock.value_or(false));
    } else if (identity.cap_ipc_lock) {
        set_capability(CAP_IPC_LOCK, *identity.cap_ipc_lock);
    }
}

Child::Child(const Identity& identity, const Body& body, Spawn spawn) : channel_(UniqueFd()) {
    int ends[2];
    must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "socketpair");
    UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    std::fflush(nullptr);
    pid_ = spawn_process(spawn);
    if (pid_ != 0) {
        channel_ = Channel(std::move(ours));
        return;
    }
    ours.reset();
    int status = 0;
    try {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        become(identity);
        Channel channel(std::move(theirs));
        body(channel);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "in child %d: %s\n", getpid(), error.what());
        status = 1;
    }
    _exit(status);
}

Child::Child(Child&& other) noexcept
    : channel_(std::move(other.channel_)),
      pid_(std::exchange(other.pid_, -1)),
      status_(other.status_) {}

Child::~Child() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
}

void Child::kill_now() const {
    if (pid_ > 0) {
        must(::kill(pid_, SIGKILL), "kill");
    }
}

int Child::wait() {
    const pid_t pid = std::exchange(pid_, -1);
    if (pid <= 0) {
        return status_;
    }
    // Whoever took its status away (SIGCHLD ignored, a wait for any child) must not make it a 0.
    while (waitpid(pid, &status_, 0) < 0) {
        if (errno != EINTR) {
            fail("waitpid for child " + std::to_string(pid));
        }
    }
    return status_;
}

bool succeeds_in_child(const Identity& identity, const Child::Body& body, Spawn spawn) {
    Child child(identity, body, spawn);
    const int status = child.wait();
    if (WIFSIGNALED(status)) {
        std::fprintf(stderr, "the child died of signal %d\n", WTERMSIG(status));
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::int64_t value_from_child(const Identity& identity,
                              const std::function<std::int64_t()>& function) {
    Child child(identity, [&](Channel& channel) { channel.send(function()); });
    return child.channel().receive();
}

void require(bool condition, const std::string& what) {
    if (!condition) {
        throw std::runtime_error(what);
    }
}

uid_t fresh_user() {
    static uid_t next = 20000;
    return next++;
}

} // namespace support
