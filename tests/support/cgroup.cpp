// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cgroup.hpp"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "failure.hpp"
#include "guest.hpp"

namespace support {

namespace {

/// Root of the cgroup tree, mounted and with its memory controller on.
const std::string& root() {
    static const std::string path = [] {
        std::string mounted = "/sys/fs/cgroup";
        if (!std::filesystem::exists(mounted + "/cgroup.controllers")) {
            must(mount("cgroup2", mounted.c_str(), "cgroup2", 0, nullptr), "mount cgroup2");
        }
        write_text(mounted + "/cgroup.subtree_control", "+memory");
        return mounted;
    }();
    return path;
}

} // namespace

MemoryCgroup::MemoryCgroup(std::uint64_t max_bytes) {
    static int count = 0;
    path_ = root() + "/hcamem-test-" + std::to_string(getpid()) + "-" + std::to_string(count++);
    must(mkdir(path_.c_str(), 0755), path_.c_str());
    if (max_bytes != 0) {
        write_text(path_ + "/memory.max", std::to_string(max_bytes));
    }
}

MemoryCgroup::~MemoryCgroup() {
    if (!eventually([&] { return rmdir(path_.c_str()) == 0 || errno != EBUSY; })) {
        std::cerr << path_ << " is still in use\n";
    }
}

void MemoryCgroup::set_high(std::uint64_t bytes) const {
    write_text(path_ + "/memory.high", std::to_string(bytes));
}

void MemoryCgroup::enter() const {
    write_text(path_ + "/cgroup.procs", "0");
}

std::uint64_t MemoryCgroup::current() const {
    return read_number(path_ + "/memory.current");
}

std::uint64_t MemoryCgroup::event(const std::string& name) const {
    std::istringstream lines(read_text(path_ + "/memory.events"));
    std::string key;
    for (std::uint64_t value = 0; lines >> key >> value;) {
        if (key == name) {
            return value;
        }
    }
    throw std::runtime_error("memory.events has no " + name);
}

} // namespace support
