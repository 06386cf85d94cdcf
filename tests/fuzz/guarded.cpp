// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "guarded.hpp"

#include <csetjmp>
#include <csignal>

#include "support/failure.hpp"

namespace fuzz {

namespace {

thread_local sigjmp_buf escape;
thread_local volatile sig_atomic_t guarded = 0;

void (*told)(std::uintptr_t) = nullptr;

void on_fault(int signal, siginfo_t* info, void*) {
    if (guarded != 0) {
        siglongjmp(escape, 1);
    }
    // The access is made again and ends the process.
    std::signal(signal, SIG_DFL);
    told(reinterpret_cast<std::uintptr_t>(info->si_addr));
}

} // namespace

void install_guard(void (*crashed)(std::uintptr_t address)) {
    told = crashed;
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    // The handler is left by a jump that does not restore the signal mask.
    action.sa_flags = SA_NODEFER | SA_SIGINFO;
    support::must(sigaction(SIGSEGV, &action, nullptr), "sigaction");
    support::must(sigaction(SIGBUS, &action, nullptr), "sigaction");
}

std::optional<std::uint64_t> load(std::uintptr_t address) {
    if (sigsetjmp(escape, 0) != 0) {
        guarded = 0;
        return std::nullopt;
    }
    guarded = 1;
    const std::uint64_t value = *reinterpret_cast<const volatile std::uint64_t*>(address);
    guarded = 0;
    return value;
}

bool store(std::uintptr_t address, std::uint64_t value) {
    if (sigsetjmp(escape, 0) != 0) {
        guarded = 0;
        return false;
    }
    guarded = 1;
    *reinterpret_cast<volatile std::uint64_t*>(address) = value;
    guarded = 0;
    return true;
}

} // namespace fuzz
