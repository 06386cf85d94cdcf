// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "report.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <type_traits>

#include "support/failure.hpp"

namespace fuzz {

namespace {

Report* current = nullptr;
int current_descriptor = -1;

Report& map(int fd) {
    // All of it is atomics and arrays of them, for which zero bytes are the initial state.
    static_assert(std::is_trivially_destructible_v<Report>);
    void* mapped = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
        support::fail("map the report");
    }
    current = static_cast<Report*>(mapped);
    current_descriptor = fd;
    return *current;
}

} // namespace

Report& Report::create() {
    const int fd = support::must(memfd_create("hcamem_fuzz", 0), "memfd_create");
    support::must(ftruncate(fd, sizeof(Report)), "ftruncate");
    return map(fd);
}

Report& Report::open(int fd) {
    return map(fd);
}

Report& Report::get() {
    return *current;
}

int Report::descriptor() {
    return current_descriptor;
}

void Report::fail(std::string_view text, std::size_t process) {
    const std::size_t number = failures_.fetch_add(1);
    if (number < most_failures) {
        Failure& failure = failure_[number];
        text = text.substr(0, failure.text.size() - 1);
        std::copy(text.begin(), text.end(), failure.text.begin());
        failure.process = process;
        failure.complete = true;
    }
    stop();
}

std::size_t Report::failures() const {
    return std::min(failures_.load(), most_failures);
}

std::string Report::failure(std::size_t number) const {
    const Failure& failure = failure_[number];
    if (!failure.complete) {
        return "(killed before it could say what)";
    }
    std::string text = failure.text.data();
    if (failure.process < most_processes) {
        text +=
            "\n  its last calls, each with its step and arguments:\n" + history(failure.process);
    }
    return text;
}

void Report::note(std::size_t process, const Call& call) {
    Slot& slot = slots_[process];
    slot.history[slot.calls.fetch_add(1, std::memory_order_relaxed) % history_length] = call;
}

std::string Report::history(std::size_t process) const {
    const Slot& slot = slots_[process];
    const std::uint64_t end = slot.calls;
    std::ostringstream lines;
    for (std::uint64_t at = end < history_length ? 0 : end - history_length; at < end; ++at) {
        const Call& call = slot.history[at % history_length];
        lines << "    " << std::string(2 * std::size_t{call.depth}, ' ') << call.step << ' '
              << call.name.data();
        for (const std::uint64_t argument : call.arguments) {
            lines << ' ' << hex(argument);
        }
        lines << '\n';
    }
    return lines.str();
}

std::string hex(std::uint64_t number) {
    std::ostringstream stream;
    stream << "0x" << std::hex << number;
    return stream.str();
}

} // namespace fuzz
