// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "support/heaps.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <system_error>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/attach_shared.h"

namespace unit {
namespace {

[[noreturn]] void failed(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

int exec_helper(int socket) {
    execl("/proc/self/exe", "unit_tests", helper_option, std::to_string(socket).c_str(),
          static_cast<char*>(nullptr));
    std::perror("exec");
    return 127;
}

} // namespace

hcamem::options heap_options() {
    hcamem::options options;
    static_cast<hcamem_options&>(options) = test_options();
    return options;
}

hcamem::shared_heap make_heap(std::size_t bytes, hcamem::shared_access access) {
    return hcamem::shared_heap(bytes, heap_options(), access);
}

int error_of(const std::function<void()>& action) {
    try {
        action();
        return 0;
    } catch (const hcamem::error& caught) {
        return caught.code().value();
    }
}

beside::beside(const std::function<int()>& body) : pid_(fork()) {
    if (pid_ < 0) {
        failed("fork");
    }
    if (pid_ != 0) {
        return;
    }
    constexpr unsigned limit_seconds = 180;
    std::signal(SIGALRM, SIG_DFL);
    alarm(limit_seconds);
    int result = 126;
    try {
        result = body();
    } catch (const std::exception& caught) {
        std::fprintf(stderr, "in a process beside the test: %s\n", caught.what());
    }
    _exit(result);
}

beside::~beside() {
    if (pid_ > 0) {
        kill();
        wait();
    }
}

void beside::kill() const {
    ::kill(pid_, SIGKILL);
}

int beside::wait() {
    int status = 0;
    const pid_t pid = std::exchange(pid_, -1);
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            failed("waitpid");
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

helper::helper()
    : socket_(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) == 0 ? ends_[0] : -1), process_([this] {
          close(ends_[0]);
          return exec_helper(ends_[1]);
      }) {
    close(ends_[1]);
}

helper::~helper() {
    close(socket_);
}

void tell(int socket, std::uint64_t value) {
    if (send(socket, &value, sizeof value, MSG_NOSIGNAL) != sizeof value) {
        failed("send");
    }
}

std::uint64_t hear(int socket) {
    std::uint64_t value = 0;
    if (recv(socket, &value, sizeof value, MSG_WAITALL) != sizeof value) {
        failed("recv");
    }
    return value;
}

int attach(const hcamem::shared_heap& heap, fake_domain& domain, hcamem_binding** binding) {
    return hcamem::core::attach_shared_with(heap.c_handle(), make_registrar(domain), binding);
}

} // namespace unit
