// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include "failure.hpp"

namespace support {

namespace {

constexpr std::chrono::milliseconds pause_between_looks(5);
constexpr int cannot_start = 127;

UniqueFd memory_file(const char* name) {
    return UniqueFd(must(memfd_create(name, MFD_CLOEXEC), "memfd_create"));
}

/// All of the file from its start, wherever the writer stands.
std::string contents(const UniqueFd& file) {
    std::string text;
    char part[4096];
    for (;;) {
        const ssize_t got = must(
            pread(file.get(), part, sizeof part, static_cast<off_t>(text.size())), "read output");
        if (got == 0) {
            return text;
        }
        text.append(part, static_cast<std::size_t>(got));
    }
}

/// In the child: becomes the program or exits with 127.
[[noreturn]] void become_program(const std::vector<std::string>& arguments,
                                 const ProcessOptions& how, int out, int err) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nothing = open("/dev/null", O_RDONLY);
    bool ready = nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
                 dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0;
    if (how.uid) {
        ready = ready && setgroups(0, nullptr) == 0 &&
                setresgid(*how.uid, *how.uid, *how.uid) == 0 &&
                setresuid(*how.uid, *how.uid, *how.uid) == 0;
        // A change of user takes the wish above back.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    std::vector<char*> words;
    for (const auto& word : arguments) {
        words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    for (const auto& setting : how.environment) {
        putenv(const_cast<char*>(setting.c_str()));
    }
    if (ready) {
        execvp(words[0], words.data());
    }
    _exit(cannot_start);
}

} // namespace

Process::Process(const std::vector<std::string>& arguments, const ProcessOptions& how)
    : out_(memory_file("stdout")), err_(memory_file("stderr")), name_(arguments.at(0)) {
    pid_ = must(fork(), "fork");
    if (pid_ == 0) {
        become_program(arguments, how, out_.get(), err_.get());
    }
}

Process::Process(Process&& other) noexcept
    : out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)) {}

Process::~Process() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
}

void Process::signal(int number) const {
    must(kill(pid_, number), "kill");
}

void Process::await_output(const std::string& text, std::chrono::seconds limit) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
        // Before the look: what it printed last is to be seen too.
        siginfo_t info{};
        must(waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT), "waitid");
        const bool last = info.si_pid != 0 || std::chrono::steady_clock::now() > end;
        if (contents(out_).find(text) != std::string::npos) {
            return;
        }
        if (last) {
            throw std::runtime_error(name_ + " did not print '" + text + "'; it printed '" +
                                     contents(out_) + contents(err_) + "'");
        }
        std::this_thread::sleep_for(pause_between_looks);
    }
}

bool Process::ended(int& wait_status) {
    const pid_t pid = must(waitpid(pid_, &wait_status, WNOHANG), "waitpid");
    if (pid == 0) {
        return false;
    }
    pid_ = -1;
    return true;
}

Finished Process::finish(std::chrono::seconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    int wait_status = 0;
    for (;;) {
        const bool last = std::chrono::steady_clock::now() > end;
        if (ended(wait_status)) {
            break;
        }
        if (last) {
            throw std::runtime_error(name_ + " did not end within " +
                                     std::to_string(limit.count()) + " s; it printed '" +
                                     contents(out_) + contents(err_) + "'");
        }
        std::this_thread::sleep_for(pause_between_looks);
    }
    const int status =
        WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
    return {status, contents(out_), contents(err_)};
}

Finished run(const std::vector<std::string>& arguments, const ProcessOptions& how) {
    return Process(arguments, how).finish();
}

} // namespace support
