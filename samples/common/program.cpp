// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "program.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <system_error>

namespace samples {
namespace {

volatile std::sig_atomic_t received_signal = 0;

void remember(int signal_number) {
    received_signal = signal_number;
}

void install_handlers() {
    struct sigaction action {};
    action.sa_handler = remember;
    sigemptyset(&action.sa_mask);
    // No SA_RESTART: poll() must return so that the wait can end. SA_RESETHAND: a second Ctrl-C
    // ends the program even if it is stuck in a driver call.
    action.sa_flags = SA_RESETHAND;
    for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
        sigaction(signal_number, &action, nullptr);
    }
}

void print_line(std::string_view name, const char* reason) {
    std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(name.size()), name.data(), reason);
}

} // namespace

int run_program(std::string_view name, const std::function<int()>& body) {
    install_handlers();
    int code = static_cast<int>(exit_code::unexpected);
    try {
        code = body();
    } catch (const failure& reason) {
        print_line(name, reason.what());
        code = reason.code();
    } catch (const std::exception& reason) {
        print_line(name, reason.what());
    }
    if (std::fflush(stdout) != 0 && code == 0) {
        print_line(name, with_errno("cannot write the result").c_str());
        code = static_cast<int>(exit_code::unexpected);
    }
    return code;
}

void throw_if_interrupted() {
    if (received_signal != 0) {
        throw interrupted(received_signal);
    }
}

std::string with_errno(std::string_view what, int error) {
    return std::string(what) + ": " + std::generic_category().message(error);
}

std::string with_errno(std::string_view what) {
    return with_errno(what, errno);
}

} // namespace samples
