// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl watch: events as they come.
#include <fcntl.h>
#include <poll.h>
#include <rdma/hcamem.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <set>

#include "commands.hpp"
#include "driver.hpp"
#include "json.hpp"
#include "output.hpp"
#include "text.hpp"

namespace ctl {

namespace {

/// How often to look for HCAs that have come.
constexpr int rescan_ms = 1000;

/// Local time with milliseconds and offset, as ISO 8601 has it.
std::string timestamp() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    tm local{};
    localtime_r(&now.tv_sec, &local);
    char seconds[sizeof "2000-01-01T00:00:00"];
    char zone[sizeof "+0000"];
    std::strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &local);
    std::strftime(zone, sizeof zone, "%z", &local);
    char text[64];
    std::snprintf(text, sizeof text, "%s.%03ld%.3s:%s", seconds, now.tv_nsec / 1'000'000, zone,
                  zone + 3);
    return text;
}

class event_reporter {
  public:
    explicit event_reporter(bool json) : json_(json) {}

    void pressure(const hcamem_event& event) const {
        const std::uint64_t wanted = event.wanted;
        const std::uint64_t available = read_memory().available;
        const std::string name = event.type == HCAMEM_EVENT_LOW        ? "low"
                                 : event.type == HCAMEM_EVENT_CRITICAL ? "critical"
                                                                       : "unknown";
        if (!json_) {
            print(timestamp() + "  " + name + "  wanted " + human_size(wanted) + "  available " +
                  human_size(available) + '\n');
            return;
        }
        json_writer line = begin(name);
        line.member("wanted_bytes", wanted).member("available_bytes", available).end_object();
        print(line.text() + '\n');
    }

    void node(const char* event, const node_info& node) const {
        if (!json_) {
            print(timestamp() + "  " + event + "  " + node.name + " (" + printable(node.hca) +
                  ")\n");
            return;
        }
        json_writer line = begin(event);
        line.member("node", node.name).member("hca", node.hca).end_object();
        print(line.text() + '\n');
    }

  private:
    static json_writer begin(const std::string& event) {
        json_writer line;
        line.begin_object().member("time", timestamp()).member("event", event);
        return line;
    }

    bool json_;
};

struct watched_node {
    node_info node;
    unique_fd fd;
    bool gone = false;
};

class node_watch {
  public:
    explicit node_watch(const command_options& options)
        : options_(options), reporter_(options.json) {}

    /// Opens nodes that are there and not watched yet.
    void rescan(bool first) {
        const std::vector<node_info> nodes = find_nodes();
        if (first) {
            check(nodes);
        }
        for (const node_info& node : nodes) {
            const bool known =
                std::any_of(watched_.begin(), watched_.end(), [&node](const watched_node& one) {
                    return one.node.name == node.name;
                });
            if (known || !wants(node)) {
                continue;
            }
            const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
            unique_fd fd(open(node.path().c_str(), flags));
            if (!fd) {
                complain(node, errno);
                continue;
            }
            watched_.push_back({node, std::move(fd)});
            if (!first) {
                reporter_.node("added", node);
            }
        }
    }

    [[nodiscard]] std::string subject() const {
        std::vector<node_info> nodes;
        for (const watched_node& one : watched_) {
            nodes.push_back(one.node);
        }
        return describe(nodes);
    }

    /// Until something happens or it is time to rescan; false if a signal ends it.
    bool wait(int signals) {
        std::vector<pollfd> files{{signals, POLLIN, 0}};
        for (const watched_node& one : watched_) {
            files.push_back({one.fd.get(), POLLIN, 0});
        }
        if (poll(files.data(), files.size(), rescan_ms) < 0 && errno != EINTR) {
            throw failure(exit_code::failed, std::string("poll: ") + std::strerror(errno));
        }
        if (files[0].revents != 0) {
            return false;
        }
        if (std::any_of(files.begin(), files.end(),
                        [](const pollfd& file) { return file.revents != 0; })) {
            read_events();
        }
        return true;
    }

  private:
    [[nodiscard]] bool wants(const node_info& node) const {
        return (!options_.node || node.name == *options_.node) &&
               (!options_.hca || node.hca == *options_.hca);
    }

    void check(const std::vector<node_info>& nodes) const {
        if (options_.hca) {
            static_cast<void>(node_of_hca(nodes, *options_.hca));
        }
        if (options_.node && std::none_of(nodes.begin(), nodes.end(),
                                          [this](const node_info& node) { return wants(node); })) {
            throw failure(exit_code::absent, "there is no node '" + *options_.node +
                                                 "'; there are: " + describe(nodes));
        }
    }

    /// Once for each node; one that comes or goes just now is not worth a word.
    void complain(const node_info& node, int error) {
        const bool passing = error == ENOENT || error == ENODEV || error == ENXIO;
        if (!passing && complained_.insert(node.name).second) {
            say("cannot watch " + node.path() + ": " + std::strerror(error) +
                (error == EACCES ? "; read permission is needed" : "") +
                (error == EPERM ? "; its HCA is in another network namespace" : ""));
        }
    }

    /// Memory is short for the whole machine, and each open node says so. The
    /// driver tells all of them under one lock, so that one round of reading
    /// after the first word gets it from each; it is reported once.
    void read_events() {
        hcamem_event pressure{};
        for (watched_node& one : watched_) {
            hcamem_event event{};
            while (read(one.fd.get(), &event, sizeof event) == ssize_t{sizeof event}) {
                if (event.type == HCAMEM_EVENT_GONE) {
                    one.gone = true;
                } else {
                    pressure = event;
                }
            }
        }
        if (pressure.type != 0) {
            reporter_.pressure(pressure);
        }
        for (const watched_node& one : watched_) {
            if (one.gone) {
                reporter_.node("gone", one.node);
            }
        }
        std::erase_if(watched_, [](const watched_node& one) { return one.gone; });
    }

    const command_options& options_;
    event_reporter reporter_;
    std::vector<watched_node> watched_;
    std::set<std::string> complained_;
};

/// A descriptor that becomes readable when the user has seen enough.
unique_fd catch_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    unique_fd fd(signalfd(-1, &signals, SFD_CLOEXEC));
    if (!fd) {
        throw failure(exit_code::failed, std::string("signalfd: ") + std::strerror(errno));
    }
    return fd;
}

} // namespace

exit_code watch(const command_options& options) {
    require_module();
    const unique_fd signals = catch_signals();
    node_watch watch(options);
    watch.rescan(true);
    say("watching " + watch.subject() + "; Ctrl-C ends");
    while (watch.wait(signals.get())) {
        watch.rescan(false);
    }
    return exit_code::success;
}

} // namespace ctl
