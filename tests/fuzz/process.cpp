// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "process.hpp"

#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <new>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "guarded.hpp"
#include "operations.hpp"
#include "support/failure.hpp"

namespace fuzz {

Process::Process(Setting setting)
    : limit(setting.memlock), report_(Report::get()), setting_(std::move(setting)) {}

void Process::note(std::string_view name, std::initializer_list<std::uint64_t> arguments) {
    Call call{};
    call.step = step_;
    call.depth = depth;
    std::copy_n(name.begin(), std::min(name.size(), call.name.size() - 1), call.name.begin());
    std::copy_n(arguments.begin(), std::min(arguments.size(), call.arguments.size()),
                call.arguments.begin());
    report_.note(setting_.number, call);
}

void Process::wrong(const std::string& what) {
    report_.fail(text("process ", setting_.number, ", number ", setting_.generation,
                      " in its place, child depth ", depth, ", step ", step_, ": ", what),
                 setting_.number);
    _exit(exit_wrong);
}

void Process::allow(std::string_view call, int error, std::initializer_list<int> errors) {
    if (error != 0 && std::find(errors.begin(), errors.end(), error) == errors.end()) {
        wrong(text(call, ": ", std::strerror(error)));
    }
}

Version Process::fresh_version() {
    // Neither zeros nor unknown.
    return static_cast<Version>(fresh_key() % (unknown - 1)) + 1;
}

void Process::verify(const Area& area, Random& random) {
    if ((area.prot & (PROT_READ | PROT_WRITE)) == 0) {
        if (load(area.start)) {
            wrong(text("a mapping with PROT_NONE at ", hex(area.start), " was read"));
        }
        return;
    }
    constexpr std::size_t enough = 16;
    for (std::size_t i = 0; i < std::min(area.pages, enough); ++i) {
        const std::size_t page = area.pages <= enough ? i
                                 : i == 0             ? area.pages - 1
                                                      : random.below(area.pages);
        if (const auto what = check_page(area.start + page * page_bytes, *area.memory,
                                         area.first + page, random)) {
            wrong(*what);
        }
    }
}

void Process::verify_all(Random& random) {
    areas.for_each([&](const Area& area) { verify(area, random); });
}

std::uint64_t Process::held_bytes() const {
    std::unordered_set<const Memory*> regions;
    areas.for_each([&](const Area& area) { regions.insert(area.memory.get()); });
    for (const Export& dma_buf : exports) {
        regions.insert(dma_buf.memory.get());
    }
    std::uint64_t pages = 0;
    for (const Memory* region : regions) {
        // Of foreign memory only a part may be known, and somebody else may be charged.
        pages += region->device() && !region->foreign() ? region->pages() : 0;
    }
    std::unordered_set<const OpenFile*> files;
    for (const Descriptor& node : nodes) {
        if (files.insert(node.file.get()).second) {
            for (const Created& created : node.file->created) {
                pages += created.pages;
            }
        }
    }
    return pages * page_bytes;
}

void Process::verify_usage() {
    if (nodes.empty()) {
        return;
    }
    hcamem_info info{};
    note("INFO", {});
    if (ioctl(nodes.front().fd.get(), HCAMEM_IOC_INFO, &info) != 0) {
        wrong(text("INFO: ", std::strerror(errno)));
    }
    if (info.abi_version != HCAMEM_ABI_VERSION || info.gone != 0 || info.ibdev[0] == 0 ||
        info.ibdev[sizeof info.ibdev - 1] != 0) {
        wrong("INFO says nonsense");
    }
    if (info.user_bytes > setting_.memlock) {
        wrong(text("the user holds ", info.user_bytes, " bytes, more than RLIMIT_MEMLOCK of ",
                   setting_.memlock));
    }
    if (const std::uint64_t held = held_bytes(); info.user_bytes < held) {
        wrong(text("the user is charged for ", info.user_bytes,
                   " bytes, and this process alone holds ", held));
    }
}

bool Process::unmap(Range range) {
    note("munmap", {range.start, range.pages});
    if (munmap(pointer(range.start), range.bytes()) != 0) {
        allow("munmap", errno, {ENOMEM});
        return false;
    }
    areas.remove(range);
    arena.reserve(range);
    return true;
}

void Process::drop(Range range) {
    if (!unmap(range)) {
        support::fail("munmap", ENOMEM);
    }
}

Descriptor* Process::writable_node(Random& random) {
    std::vector<Descriptor*> candidates;
    for (Descriptor& node : nodes) {
        if (node.file->readable && node.file->writable) {
            candidates.push_back(&node);
        }
    }
    return candidates.empty() ? nullptr : candidates[random.below(candidates.size())];
}

void Process::freeze_what_is_shared() {
    areas.for_each([](const Area& area) {
        if (area.memory->device() && area.memory->fork() == HCAMEM_FORK_POLICY_SHARE) {
            area.memory->freeze();
        }
    });
    for (const Export& dma_buf : exports) {
        dma_buf.memory->freeze();
    }
}

pid_t Process::spawn(Birth birth, bool concurrent, Random& random) {
    if (concurrent) {
        freeze_what_is_shared();
    }
    note(birth == Birth::fork ? "fork" : "clone", {static_cast<std::uint64_t>(birth)});
    pid_t child = -1;
    switch (birth) {
    case Birth::fork:
        child = ::fork();
        break;
    case Birth::raw_clone:
        child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
        break;
    case Birth::shared_files:
        child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD | CLONE_FILES, 0, 0, 0, 0));
        break;
    }
    if (child < 0) {
        allow("fork", errno, {EAGAIN, ENOMEM});
    } else if (child == 0) {
        inherit(birth, concurrent, random);
    }
    return child;
}

/// What the child has where its parent has this area.
Area Process::inherited(const Area& area) {
    const bool own =
        area.memory->device() ? area.memory->fork() != HCAMEM_FORK_POLICY_SHARE : area.wiped;
    Area child = area;
    if (own) {
        child.memory = std::make_shared<Memory>(fresh_key(), area.pages, Memory::Kind::anonymous,
                                                HCAMEM_FORK_POLICY_ZERO);
        child.first = 0;
        child.wiped = true;
    }
    return child;
}

void Process::inherit(Birth birth, bool concurrent, Random& random) {
    if (concurrent && !random.one_in(4)) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    ++depth;
    setting_.stream = mix(setting_.stream, step_);
    setting_.spoil = false;
    step_ = keys_ = 0;
    children.clear();
    for (const Descriptor& node : nodes) {
        node.file->created.clear();
    }
    if (birth != Birth::shared_files) {
        pipes.clear();
        rings.clear();
    }

    // The holes come first: what the model needs to know more would be mapped into them.
    std::vector<Area> parents;
    areas.for_each([&](const Area& area) {
        if (!area.dontfork) {
            parents.push_back(area);
            return;
        }
        if (mapped(area.start)) {
            wrong(text("the child has a mapping at ", hex(area.start), " in spite of DONTFORK"));
        }
        arena.reserve({area.start, area.pages});
    });
    areas.clear();
    for (const Area& area : parents) {
        areas.add(inherited(area));
    }
    verify_all(random);
}

void Process::reap(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        allow("waitpid", errno, {EINTR});
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == exit_wrong) {
        _exit(exit_wrong);
    }
    const bool as_usual = WIFEXITED(status)
                              ? WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == exit_exhausted
                              : WTERMSIG(status) == SIGKILL;
    if (!as_usual) {
        wrong(text("a child ended with wait status ", hex(static_cast<unsigned>(status))));
    }
}

void Process::spoil(Random& random) {
    std::vector<Area> candidates;
    areas.for_each([&](const Area& area) {
        if (area.memory->device() && (area.prot & PROT_WRITE) != 0 && !area.memory->foreign()) {
            candidates.push_back(area);
        }
    });
    if (!candidates.empty()) {
        const Area& area = candidates[random.below(candidates.size())];
        if (store(area.start, ~std::uint64_t{0})) {
            areas.for_each([&](const Area& each) { verify(each, random); });
        }
    }
}

void Process::step() {
    Random random(mix(setting_.stream, step_));
    const std::size_t number = draw_operation(random);
    const Operation& operation = operations()[number];
    const Outcome outcome = operation.run(*this, random);
    Tally& tally = report_.tally(number);
    (outcome == Outcome::done      ? tally.done
     : outcome == Outcome::refused ? tally.refused
                                   : tally.idle)
        .fetch_add(1, std::memory_order_relaxed);
    if (step_ % 8 == 0 && !areas.empty()) {
        verify(areas.pick(random), random);
    }
    if (step_ % 32 == 0) {
        verify_usage();
    }
    if (setting_.spoil && step_ >= 30) {
        spoil(random);
    }
    ++step_;
    report_.slot(setting_.number).steps.fetch_add(1, std::memory_order_relaxed);
}

void Process::end(int status) {
    for (const pid_t child : children) {
        kill(child, SIGKILL);
    }
    for (const pid_t child : std::exchange(children, {})) {
        reap(child);
    }
    _exit(status);
}

void Process::live(std::uint64_t steps) {
    try {
        if (depth == 0) {
            Random random(setting_.stream);
            open_node(*this, random);
        }
        while (step_ < steps && !report_.stopping()) {
            step();
        }
        Random random(mix(setting_.stream, ~step_));
        verify_all(random);
    } catch (const std::bad_alloc&) {
        end(exit_exhausted);
    } catch (const std::system_error& error) {
        switch (error.code().value()) {
        case ENOMEM:
        case EAGAIN:
        case EMFILE:
        case ENFILE:
            end(exit_exhausted);
        default:
            wrong(error.what());
        }
    }
    end(0);
}

bool mapped(std::uintptr_t address) {
    unsigned char vector = 0;
    return mincore(pointer(address), page_bytes, &vector) == 0 || errno != ENOMEM;
}

} // namespace fuzz
