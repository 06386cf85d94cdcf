// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "tool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "support/failure.hpp"
#include "support/patience.hpp"

using namespace support;

const Identity nobody{65534, RLIM_INFINITY, {}};

namespace {

/// Starts a program with its two outputs going to these descriptors.
pid_t start(const std::vector<std::string>& command, const Circumstances& circumstances, int out,
            int err) {
    std::vector<char*> arguments;
    for (const std::string& argument : command) {
        arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    std::fflush(nullptr);
    const pid_t pid = must(fork(), "fork");
    if (pid != 0) {
        return pid;
    }
    try {
        if (circumstances.before) {
            circumstances.before();
        }
        become(circumstances.identity);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        must(dup2(out, STDOUT_FILENO), "dup2");
        must(dup2(err, STDERR_FILENO), "dup2");
        execvp(arguments[0], arguments.data());
        fail(command[0]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "cannot run %s: %s\n", arguments[0], error.what());
    }
    _exit(127);
}

int status_of(int wait_status) {
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

UniqueFd memory_file() {
    return UniqueFd(must(memfd_create("output", MFD_CLOEXEC), "memfd_create"));
}

std::string contents(const UniqueFd& file) {
    std::string text;
    char part[4096];
    for (;;) {
        const ssize_t got =
            must(pread(file.get(), part, sizeof part, static_cast<off_t>(text.size())), "pread");
        if (got == 0) {
            return text;
        }
        text.append(part, static_cast<std::size_t>(got));
    }
}

Json json_of_success(const Outcome& outcome) {
    if (outcome.status != 0) {
        throw std::runtime_error("hcamemctl exited with " + std::to_string(outcome.status) + ": " +
                                 outcome.err);
    }
    return outcome.json();
}

} // namespace

std::string tool_path() {
    const auto self = std::filesystem::read_symlink("/proc/self/exe");
    return self.parent_path().parent_path() / "bin/hcamemctl";
}

Outcome run(const std::vector<std::string>& command, const Circumstances& circumstances) {
    const UniqueFd out = memory_file();
    const UniqueFd err = memory_file();
    const pid_t pid = start(command, circumstances, out.get(), err.get());
    int status = 0;
    must(waitpid(pid, &status, 0), "waitpid");
    return {status_of(status), contents(out), contents(err)};
}

Outcome hcamemctl(std::vector<std::string> arguments, const Circumstances& circumstances) {
    arguments.insert(arguments.begin(), tool_path());
    return run(arguments, circumstances);
}

Json show(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"show", "--json"});
    return json_of_success(hcamemctl(arguments));
}

Json regions_of(pid_t pid) {
    return show({"--pid", std::to_string(pid)}).at("regions");
}

Json use_of(pid_t pid, const std::string& node) {
    const Json processes = show({"--pid", std::to_string(pid)}).at("processes");
    for (const Json& use : processes.at(0).at("uses")) {
        if (use.at("node") == (node.empty() ? Json() : Json(node))) {
            return use;
        }
    }
    throw std::runtime_error("process " + std::to_string(pid) + " does not use " + node);
}

RunningTool::RunningTool(std::vector<std::string> arguments, const Circumstances& circumstances) {
    int out[2];
    int err[2];
    must(pipe2(out, O_CLOEXEC), "pipe");
    must(pipe2(err, O_CLOEXEC), "pipe");
    out_ = UniqueFd(out[0]);
    err_ = UniqueFd(err[0]);
    const UniqueFd out_end(out[1]);
    const UniqueFd err_end(err[1]);
    arguments.insert(arguments.begin(), tool_path());
    pid_ = start(arguments, circumstances, out_end.get(), err_end.get());
}

RunningTool::~RunningTool() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        wait();
    }
}

std::string RunningTool::next(const UniqueFd& from, std::string& text) {
    const auto limit_ms = static_cast<int>(std::chrono::milliseconds(patience).count());
    for (;;) {
        if (const auto end = text.find('\n'); end != std::string::npos) {
            const std::string line = text.substr(0, end);
            text.erase(0, end + 1);
            return line;
        }
        pollfd file{from.get(), POLLIN, 0};
        if (must(poll(&file, 1, limit_ms), "poll") == 0) {
            throw std::runtime_error("hcamemctl writes no line");
        }
        char part[4096];
        const ssize_t got = must(read(from.get(), part, sizeof part), "read");
        if (got == 0) {
            throw std::runtime_error("hcamemctl ended");
        }
        text.append(part, static_cast<std::size_t>(got));
    }
}

std::vector<std::string> RunningTool::rest() {
    char part[4096];
    for (ssize_t got = 1; got > 0; out_text_.append(part, static_cast<std::size_t>(got))) {
        got = must(read(out_.get(), part, sizeof part), "read");
    }
    std::vector<std::string> lines;
    std::istringstream text(std::exchange(out_text_, {}));
    for (std::string line; std::getline(text, line);) {
        lines.push_back(line);
    }
    return lines;
}

void RunningTool::send(int signal) const {
    must(kill(pid_, signal), "kill");
}

bool RunningTool::has_open(const std::string& path) const {
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd")) {
        std::error_code gone; // closed between the list and the look
        if (std::filesystem::read_symlink(entry, gone).string().starts_with(path)) {
            return true;
        }
    }
    return false;
}

int RunningTool::wait() {
    if (pid_ > 0) {
        int status = 0;
        must(waitpid(pid_, &status, 0), "waitpid");
        status_ = status_of(status);
        pid_ = -1;
    }
    return status_;
}
