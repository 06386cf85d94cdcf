// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Children: by fork, by the bare system call, executed, killed, with less rights or in another
// user namespace.
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>

#include "operations.hpp"

namespace fuzz {

namespace {

constexpr std::uint32_t greatest_depth = 3;
constexpr std::size_t most_children = 3;
constexpr int executed_seconds = 60;

/// CREATE must be refused because of RLIMIT_MEMLOCK; another refusal may come first.
void must_be_over_limit(Process& process, std::uint64_t bytes) {
    for (const Descriptor& node : process.nodes) {
        if (!node.file->readable || !node.file->writable) {
            continue;
        }
        hcamem_create request{};
        request.size = bytes;
        request.mapping = HCAMEM_MAPPING_PAGES;
        request.numa_node = -1;
        process.note("CREATE over the limit", {bytes});
        if (ioctl(node.fd.get(), HCAMEM_IOC_CREATE, &request) == 0) {
            process.wrong(text("CREATE granted ", bytes, " bytes over RLIMIT_MEMLOCK"));
        }
        process.allow("CREATE over the limit", errno, {EAGAIN, EDQUOT, ENOMEM});
    }
}

void write_file(const char* path, const std::string& content) {
    const support::UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
    if (fd.valid() && write(fd.get(), content.data(), content.size()) < 0) {
        return; // the kernel forbids it: then the rest happens without
    }
}

} // namespace

Outcome fork_and_wait(Process& process, Random& random) {
    if (process.depth >= greatest_depth) {
        return Outcome::idle;
    }
    const Birth birth =
        random.one_of({Birth::fork, Birth::fork, Birth::raw_clone, Birth::shared_files});
    const std::uint64_t steps = random.below(30);
    const pid_t child = process.spawn(birth, false, random);
    if (child < 0) {
        return Outcome::refused;
    }
    if (child == 0) {
        // What it closed or opened there would not be known here.
        process.live(birth == Birth::shared_files ? 0 : steps);
    }
    process.reap(child);
    return Outcome::done;
}

Outcome fork_beside(Process& process, Random& random) {
    if (process.depth >= greatest_depth || process.children.size() >= most_children) {
        return Outcome::idle;
    }
    const std::uint64_t steps = random.below(200);
    const Birth birth = random.one_of({Birth::fork, Birth::raw_clone});
    const pid_t child = process.spawn(birth, true, random);
    if (child < 0) {
        return Outcome::refused;
    }
    if (child == 0) {
        process.live(steps);
    }
    process.children.push_back(child);
    return Outcome::done;
}

Outcome fork_and_kill(Process& process, Random& random) {
    if (process.depth >= greatest_depth) {
        return Outcome::idle;
    }
    const std::uint64_t microseconds = random.below(5000);
    const pid_t child = process.spawn(random.one_of({Birth::fork, Birth::raw_clone}), true, random);
    if (child < 0) {
        return Outcome::refused;
    }
    if (child == 0) {
        process.live(1000);
    }
    usleep(static_cast<useconds_t>(microseconds));
    kill(child, SIGKILL);
    process.reap(child);
    return Outcome::done;
}

Outcome fork_with_less(Process& process, Random& random) {
    if (process.depth >= greatest_depth) {
        return Outcome::idle;
    }
    const rlim_t less =
        std::min(process.limit, random.one_of<rlim_t>({0, page_bytes - 1, page_bytes, 1 << 20}));
    const std::uint64_t steps = random.below(20);
    const pid_t child = process.spawn(Birth::fork, false, random);
    if (child < 0) {
        return Outcome::refused;
    }
    if (child == 0) {
        const rlimit limit{less, less};
        if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
            process.wrong("RLIMIT_MEMLOCK cannot be lowered");
        }
        process.limit = less;
        must_be_over_limit(process, less + 1);
        process.live(steps);
    }
    process.reap(child);
    return Outcome::done;
}

Outcome fork_into_namespace(Process& process, Random& random) {
    if (process.depth >= greatest_depth) {
        return Outcome::idle;
    }
    const int flags = CLONE_NEWUSER | random.one_of({0, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWIPC});
    const std::uint64_t steps = random.below(20);
    const uid_t user = geteuid();
    const pid_t child = process.spawn(Birth::fork, false, random);
    if (child < 0) {
        return Outcome::refused;
    }
    if (child == 0) {
        // As root of a namespace of its own it is still the same user to the driver.
        if (unshare(flags) == 0) {
            write_file("/proc/self/uid_map", text("0 ", user, " 1"));
            must_be_over_limit(process, process.limit + 1);
        }
        process.live(steps);
    }
    process.reap(child);
    return Outcome::done;
}

Outcome execute(Process& process, Random& random) {
    std::array<Descriptor*, 1> node{process.writable_node(random)};
    if (node[0] == nullptr) {
        return Outcome::idle;
    }
    // The descriptor is to survive; posix_spawn() is a vfork() and an execve().
    const support::UniqueFd inherited(fcntl(node[0]->fd.get(), F_DUPFD, 0));
    if (!inherited.valid()) {
        process.allow("dup", errno, {EMFILE, ENOMEM});
        return Outcome::refused;
    }
    std::string name = "hcamem_fuzz";
    std::string option = "--inherited";
    std::string descriptor = std::to_string(inherited.get());
    std::string report = std::to_string(Report::descriptor());
    std::array<char*, 5> arguments{name.data(), option.data(), descriptor.data(), report.data(),
                                   nullptr};
    std::array<char*, 1> environment{nullptr};
    process.note("posix_spawn", {static_cast<std::uint64_t>(inherited.get())});
    pid_t child = -1;
    const int error = posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(),
                                  environment.data());
    if (error != 0) {
        process.allow("posix_spawn", error, {EAGAIN, ENOMEM});
        return Outcome::refused;
    }
    if (random.one_in(4)) {
        kill(child, SIGKILL);
    }
    process.reap(child);
    return Outcome::done;
}

Outcome reap_child(Process& process, Random& random) {
    if (process.children.empty()) {
        return Outcome::idle;
    }
    const auto chosen = process.children.begin() +
                        static_cast<std::ptrdiff_t>(random.below(process.children.size()));
    const pid_t child = *chosen;
    process.children.erase(chosen);
    if (random.one_in(2)) {
        process.note("kill", {static_cast<std::uint64_t>(child)});
        kill(child, SIGKILL);
    }
    process.reap(child);
    return Outcome::done;
}

void run_inherited(int node) {
    alarm(executed_seconds);
    const auto end = [](const std::optional<std::string>& wrong) {
        if (wrong) {
            Report::get().fail("executed program: " + *wrong);
        }
        _exit(wrong ? exit_wrong : 0);
    };
    hcamem_info info{};
    if (ioctl(node, HCAMEM_IOC_INFO, &info) != 0) {
        end(text("INFO: ", std::strerror(errno)));
    }
    constexpr std::size_t bytes = 5 * page_bytes;
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, node, 0);
    if (mapped == MAP_FAILED) {
        const bool refused =
            errno == EAGAIN || errno == EDQUOT || errno == ENOMEM || errno == EPERM;
        end(refused ? std::nullopt : std::optional(text("mmap: ", std::strerror(errno))));
    }
    Memory memory(mix(static_cast<std::uint64_t>(getpid()), 1), bytes / page_bytes,
                  Memory::Kind::device, HCAMEM_FORK_POLICY_ZERO);
    const auto start = reinterpret_cast<std::uintptr_t>(mapped);
    const auto wrong = fill_new(start, memory);
    end(wrong ? wrong : check_all(start, memory));
    _exit(0);
}

} // namespace fuzz
