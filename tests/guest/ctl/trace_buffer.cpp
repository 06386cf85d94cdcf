// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "trace_buffer.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "support/failure.hpp"
#include "support/guest.hpp"

using namespace support;

TraceBuffer::TraceBuffer() : folder_("/sys/kernel/tracing/instances/ctl_tests") {
    must(mkdir(folder_.c_str(), 0700), folder_.c_str());
    write_text(folder_ + "/events/hcamem/enable", "1");
}

TraceBuffer::~TraceBuffer() {
    rmdir(folder_.c_str());
}

std::vector<TraceEvent> TraceBuffer::events(const std::string& name) const {
    std::vector<TraceEvent> found;
    std::istringstream lines(read_text(folder_ + "/trace"));
    const std::string mark = " " + name + ": ";
    for (std::string line; std::getline(lines, line);) {
        const auto at = line.find(mark);
        if (line.starts_with('#') || at == std::string::npos) {
            continue;
        }
        TraceEvent event;
        const auto task = line.find_first_not_of(' ');
        event["task"] = line.substr(task, line.find(" [", task) - task);
        event["task"].erase(event["task"].find_last_not_of(' ') + 1);
        std::istringstream fields(line.substr(at + mark.size()));
        for (std::string field; fields >> field;) {
            const auto equals = field.find('=');
            event[field.substr(0, equals)] = field.substr(equals + 1);
        }
        found.push_back(event);
    }
    return found;
}
