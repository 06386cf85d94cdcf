// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl watch: what the kernel tells the holders of memory, a line each.
#include <fcntl.h>
#include <poll.h>
#include <rdma/hcamem.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "commands.hpp"
#include "driver.hpp"
#include "files.hpp"
#include "json.hpp"
#include "text.hpp"

namespace ctl {

namespace {

/// How often to look for HCAs that have come.
constexpr int rescan_ms = 1000;

struct watched_node {
    node_info node;
    unique_fd fd;
    bool gone = false;
};

class node_watch {
  public:
    explicit node_watch(bool json) : json_(json) {}

    /// Opens nodes that are there and not watched yet.
    void rescan(bool first) {
        for (const node_info& node : find_nodes()) {
            const auto same = [&node](const watched_node& one) {
                return one.node.name == node.name;
            };
            if (std::any_of(watched_.begin(), watched_.end(), same)) {
                continue;
            }
            unique_fd fd(open(node.path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
            if (!fd && first) {
                throw failure(exit_code::failed,
                              "cannot watch " + node.path() + ": " + std::strerror(errno));
            }
            if (fd) {
                watched_.push_back({node, std::move(fd)});
                if (!first) {
                    tell("added", {{"node", node.name}, {"hca", node.hca}});
                }
            }
        }
    }

    /// Until something happens or it is time to rescan.
    void wait() {
        std::vector<pollfd> files;
        for (const watched_node& one : watched_) {
            files.push_back({one.fd.get(), POLLIN, 0});
        }
        if (poll(files.data(), files.size(), rescan_ms) > 0) {
            read_events();
        }
    }

  private:
    /// Memory is short for the whole machine, and each open node says so. The
    /// driver tells all of them under one lock, so that one round of reading
    /// after the first word gets it from each; it is reported once.
    void read_events() {
        hcamem_event pressure{};
        for (watched_node& one : watched_) {
            hcamem_event event{};
            while (read(one.fd.get(), &event, sizeof event) == ssize_t{sizeof event}) {
                one.gone = one.gone || event.type == HCAMEM_EVENT_GONE;
                pressure = event.type == HCAMEM_EVENT_GONE ? pressure : event;
            }
        }
        if (pressure.type != 0) {
            const std::uint64_t wanted = pressure.wanted;
            tell(pressure.type == HCAMEM_EVENT_CRITICAL ? "critical" : "low",
                 {{"wanted_bytes", wanted}, {"available_bytes", available_memory()}});
        }
        for (const watched_node& one : watched_) {
            if (one.gone) {
                tell("gone", {{"node", one.node.name}, {"hca", one.node.hca}});
            }
        }
        std::erase_if(watched_, [](const watched_node& one) { return one.gone; });
    }

    void tell(const char* event, const json& details) const {
        char time[sizeof "2000-01-01T00:00:00+0000"];
        const std::time_t now = std::time(nullptr);
        std::strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S%z", std::localtime(&now));
        if (json_) {
            json line{{"time", time}, {"event", event}};
            line.update(details);
            print(line_of(line));
            return;
        }
        std::string text = std::string(time) + "  " + event;
        for (const auto& [name, value] : details.items()) {
            text += "  " + name + "=" +
                    (value.is_string() ? printable(value.get<std::string>()) : value.dump());
        }
        print(text + '\n');
    }

    bool json_;
    std::vector<watched_node> watched_;
};

} // namespace

exit_code watch(const command_options& options) {
    node_watch watch(options.json);
    watch.rescan(true);
    say("watching; Ctrl-C ends");
    for (;;) {
        watch.wait();
        watch.rescan(false);
    }
}

} // namespace ctl
