// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "supervisor.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "bystander.hpp"
#include "operations.hpp"
#include "process.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"

namespace fuzz {

namespace {

using namespace std::chrono_literals;

// No measure of speed: an emulated, instrumented kernel takes seconds for what takes milliseconds.
constexpr auto stuck_after = 120s;
constexpr auto grace = 20s;
constexpr auto patience = 300s; // for operations that come seldom

constexpr uid_t fuzzing_user = 65534;
constexpr uid_t bystanding_user = 1;
constexpr std::uint64_t memlock = std::uint64_t{64} << 20; // of the fuzzing user, bytes
constexpr rlim_t most_tasks = 160;
constexpr rlim_t most_descriptors = 256;

std::uint64_t oom_kills() {
    std::istringstream lines(support::read_text("/proc/vmstat"));
    std::string name;
    for (std::uint64_t value = 0; lines >> name >> value;) {
        if (name == "oom_kill") {
            return value;
        }
    }
    throw std::runtime_error("/proc/vmstat does not count OOM kills");
}

void limit(int resource, rlim_t value) {
    const rlimit both{value, value};
    // NOLINTNEXTLINE(bugprone-narrowing-conversions): the C library's enum
    support::must(setrlimit(static_cast<__rlimit_resource>(resource), &both), "setrlimit");
}

/// Fields of /proc/PID/stat that come after the name.
std::optional<pid_t> parent_of(pid_t pid) {
    std::ifstream file(text("/proc/", pid, "/stat"));
    std::string line;
    std::getline(file, line);
    const auto name_end = line.rfind(')');
    if (name_end == std::string::npos) {
        return std::nullopt;
    }
    std::istringstream fields(line.substr(name_end + 1));
    char state = 0;
    pid_t parent = -1;
    fields >> state >> parent;
    return parent;
}

std::vector<pid_t> own_children() {
    std::vector<pid_t> children;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) {
            const pid_t pid = std::stoi(name);
            if (parent_of(pid) == getpid()) {
                children.push_back(pid);
            }
        }
    }
    return children;
}

/// Where in the kernel a process is.
std::string whereabouts(pid_t pid) {
    std::ostringstream out;
    for (const char* file : {"wchan", "syscall", "stack"}) {
        std::ifstream content(text("/proc/", pid, "/", file));
        out << "  " << file << ": " << content.rdbuf() << '\n';
        out.clear(); // an empty file sets failbit
    }
    return out.str();
}

void on_alarm(int) {}

/// The first operation that never succeeded, or null.
const char* never_done(Report& report) {
    for (std::size_t i = 0; i < operations().size(); ++i) {
        if (operations()[i].everywhere && report.tally(i).done == 0) {
            return operations()[i].name;
        }
    }
    return nullptr;
}

} // namespace

Supervisor::Supervisor(const Options& options)
    : options_(options),
      report_(Report::create()),
      random_(mix(options.seed, ~std::uint64_t{0})),
      total_before_(node_.total()),
      oom_kills_before_(oom_kills()),
      workers_(options.processes) {
    if (options_.memory_max != 0) {
        cgroup_.emplace(options_.memory_max);
    }
    for (std::size_t i = 0; i < options_.processes; ++i) {
        std::array<int, 2> ends{};
        support::must(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends.data()), "socketpair");
        mailboxes_.push_back({support::UniqueFd(ends[0]), support::UniqueFd(ends[1])});
    }
    // What loses its parent comes to us, so that nothing can escape the last look.
    support::must(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "PR_SET_CHILD_SUBREAPER");
}

Supervisor::~Supervisor() {
    for (const pid_t child : own_children()) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }
}

void Supervisor::start_bystander() {
    bystander_ = support::must(fork(), "fork");
    if (bystander_ == 0) {
        try {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            support::become({bystanding_user, bystander_memlock, std::nullopt});
        } catch (const std::exception& error) {
            report_.fail(error.what());
            _exit(exit_wrong);
        }
        run_bystander();
    }
}

void Supervisor::start_worker(std::size_t number) {
    Worker& worker = workers_[number];
    Setting setting;
    for (const std::string& name : support::Node::names()) {
        setting.nodes.push_back("/dev/infiniband/" + name);
    }
    setting.number = number;
    setting.generation = worker.generation;
    setting.stream = mix(mix(options_.seed, number), worker.generation);
    setting.memlock = memlock;
    setting.steps = options_.steps;
    setting.mailbox = mailboxes_[number].read_end.get();
    for (const Mailbox& mailbox : mailboxes_) {
        setting.mailboxes.push_back(mailbox.write_end.get());
    }
    setting.spoil = options_.spoil && number == 0;

    ++worker.generation;
    worker.killed = false;
    worker.moved = Clock::now();
    worker.pid = support::must(fork(), "fork");
    if (worker.pid != 0) {
        return;
    }
    try {
        node_.close();
        if (cgroup_) {
            cgroup_->enter();
        }
        limit(RLIMIT_CORE, 0);
        limit(RLIMIT_NPROC, most_tasks);
        limit(RLIMIT_NOFILE, most_descriptors);
        support::become({fuzzing_user, memlock, std::nullopt});
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct sigaction action {};
        action.sa_handler = on_alarm; // ends a blocking read
        support::must(sigaction(SIGALRM, &action, nullptr), "sigaction");
        Process(std::move(setting)).run();
    } catch (const std::exception& error) {
        report_.fail(text("process ", number, " cannot start: ", error.what()));
    }
    _exit(exit_wrong);
}

void Supervisor::judge_worker(std::size_t number, int status) {
    Worker& worker = workers_[number];
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    const bool expected = killed && (worker.killed || cgroup_);
    const bool ended =
        WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == exit_exhausted ||
                              WEXITSTATUS(status) == exit_wrong);
    if (!expected && !ended) {
        report_.fail(text("process ", number, ", number ", worker.generation,
                          " in its place, ended with wait status ",
                          hex(static_cast<unsigned>(status))),
                     number);
    }
    worker.pid = -1;
    if (!report_.stopping()) {
        start_worker(number);
    }
}

void Supervisor::take_ended() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == bystander_) {
            bystander_ = -1;
            if (WIFSIGNALED(status)) {
                report_.fail(text("the bystander was killed by signal ", WTERMSIG(status)));
            }
        }
        const auto worker = std::find_if(workers_.begin(), workers_.end(),
                                         [pid](const Worker& each) { return each.pid == pid; });
        if (worker != workers_.end()) {
            judge_worker(static_cast<std::size_t>(worker - workers_.begin()), status);
        }
    }
}

void Supervisor::look_for_stuck() {
    for (std::size_t number = 0; number < workers_.size(); ++number) {
        Worker& worker = workers_[number];
        const std::uint64_t steps = report_.slot(number).steps;
        if (steps != worker.steps) {
            worker.steps = steps;
            worker.moved = Clock::now();
        } else if (Clock::now() - worker.moved > stuck_after) {
            report_.fail(text("process ", number, " does not get on\n", whereabouts(worker.pid)),
                         number);
            worker.moved = Clock::now();
        }
    }
}

void Supervisor::supervise() {
    const auto end = Clock::now() + std::chrono::seconds(options_.seconds);
    const auto latest = end + patience;
    auto next_kill = Clock::now() + 500ms;
    while (!report_.stopping() && Clock::now() < latest &&
           (Clock::now() < end || never_done(report_) != nullptr)) {
        std::this_thread::sleep_for(20ms);
        take_ended();
        look_for_stuck();
        if (workers_.size() > 1 && Clock::now() > next_kill) {
            const Worker& victim = workers_[random_.below(workers_.size())];
            if (victim.pid > 0) {
                kill_fuzzer(victim.pid);
                ++kills_;
            }
            next_kill = Clock::now() + std::chrono::milliseconds(random_.between(100, 2000));
        }
    }
    report_.stop();
}

/// Everybody ends by itself; fuzzing processes that do not are killed. The bystander, who may have
/// to finish its round on a busy machine, is given time.
void Supervisor::end_all() {
    const auto begin = Clock::now();
    for (std::vector<pid_t> left; !(left = own_children()).empty();) {
        take_ended();
        std::this_thread::sleep_for(20ms);
        if (Clock::now() > begin + grace) {
            for (const pid_t pid : left) {
                kill_fuzzer(pid);
            }
        }
        if (Clock::now() > begin + grace + stuck_after) {
            report_.fail(text(left.front() == bystander_ ? "the bystander" : "a process",
                              " does not end\n", whereabouts(left.front())));
            return;
        }
    }
}

void Supervisor::kill_fuzzer(pid_t pid) {
    if (pid == bystander_) {
        return;
    }
    for (Worker& worker : workers_) {
        worker.killed |= worker.pid == pid;
    }
    kill(pid, SIGKILL);
}

void Supervisor::check_out_of_memory() {
    const std::uint64_t all = oom_kills() - oom_kills_before_;
    oom_kills_ = cgroup_ ? cgroup_->event("oom_kill") : 0;
    if (all != oom_kills_) {
        report_.fail(text("the OOM killer killed ", all, " processes, ", oom_kills_,
                          " of them for the limit of the fuzzers' own cgroup"));
    }
}

/// A limit that nobody comes near shows nothing.
void Supervisor::check_cgroup_limit() {
    over_cgroup_limit_ = cgroup_ ? cgroup_->event("max") : 0;
    if (cgroup_ && over_cgroup_limit_ == 0) {
        report_.fail(text("the cgroup's limit of ", options_.memory_max, " bytes was never met"));
    }
}

/// Not a byte is held, and all that the user may have can be had.
void Supervisor::check_nothing_charged() {
    mailboxes_.clear(); // descriptors on their way
    if (!support::eventually([&] { return node_.total() == total_before_; })) {
        report_.fail(text("all processes ended, and ", node_.total(), " bytes are still held, ",
                          total_before_, " before"));
    }
    const support::Identity user{fuzzing_user, memlock, std::nullopt};
    const auto attempt = [&] {
        return support::value_from_child(
            user, [&] { return support::Region::attempt(support::Node(), memlock); });
    };
    std::int64_t error = 0;
    if (!support::eventually([&] { return (error = attempt()) == 0; })) {
        report_.fail(text(
            "nothing is held, and the user's whole RLIMIT_MEMLOCK is refused with errno ", error));
    }
}

/// That nothing went wrong means something only where something went on.
void Supervisor::check_operations() {
    if (report_.failures() != 0) {
        return; // which ended it early
    }
    if (const char* name = never_done(report_)) {
        report_.fail(text("the operation '", name, "' never succeeded"));
    }
    if (workers_.size() > 1 && kills_ == 0) {
        report_.fail("no process was killed");
    }
}

void Supervisor::check_end() {
    check_operations();
    check_cgroup_limit();
    check_out_of_memory();
    check_nothing_charged();
    if (report_.bystander_rounds() == 0) {
        report_.fail("the bystander did not get through a single round");
    }
}

void Supervisor::print() const {
    std::uint64_t done = 0;
    std::uint64_t refused = 0;
    for (std::size_t i = 0; i < operations().size(); ++i) {
        done += report_.tally(i).done;
        refused += report_.tally(i).refused;
    }
    std::uint64_t processes = 0;
    for (const Worker& worker : workers_) {
        processes += worker.generation;
    }
    std::cout << "seed " << options_.seed << ": " << done << " operations done, " << refused
              << " refused, by " << processes << " processes, " << kills_ << " of them killed; ";
    if (cgroup_) {
        std::cout << "cgroup's limit met " << over_cgroup_limit_ << " times, " << oom_kills_
                  << " OOM kills; ";
    }
    std::cout << report_.bystander_rounds() << " rounds of the bystander\n";
    for (std::size_t i = 0; i < report_.failures(); ++i) {
        std::cout << "FAILED: " << report_.failure(i) << '\n';
    }
    if (report_.failures() != 0) {
        std::cout << "again: hcamem_fuzz --seed " << options_.seed << " --processes "
                  << options_.processes << " --steps " << options_.steps << " --memory-max "
                  << options_.memory_max << '\n';
    }
    std::cout << std::flush;
}

bool Supervisor::run() {
    start_bystander();
    for (std::size_t number = 0; number < workers_.size(); ++number) {
        start_worker(number);
    }
    supervise();
    end_all();
    check_end();
    print();
    return report_.failures() == 0;
}

} // namespace fuzz
