// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "guest.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "failure.hpp"
#include "patience.hpp"
#include "unique_fd.hpp"

namespace support {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr) {
        throw std::runtime_error(std::string(name) + " is not set: run this in the guest");
    }
    return value;
}

std::string kernel() {
    return environment("HCAMEM_KERNEL");
}

bool rxe_imports_dma_bufs() {
    return environment("HCAMEM_RXE") == "dmabuf";
}

std::string read_text(const std::string& path) {
    const UniqueFd fd(must(open(path.c_str(), O_RDONLY | O_CLOEXEC), path.c_str()));
    std::string text;
    char part[4096];
    for (;;) {
        const ssize_t got = must(read(fd.get(), part, sizeof part), path.c_str());
        if (got == 0) {
            return text;
        }
        text.append(part, static_cast<std::size_t>(got));
    }
}

void write_text(const std::string& path, const std::string& text) {
    const UniqueFd fd(must(open(path.c_str(), O_WRONLY | O_CLOEXEC), path.c_str()));
    must(write(fd.get(), text.data(), text.size()), path.c_str());
}

std::uint64_t read_number(const std::string& path) {
    return std::stoull(read_text(path));
}

int shell(const std::string& command) {
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void must_shell(const std::string& command) {
    const int status = shell(command);
    if (status != 0) {
        throw std::runtime_error("'" + command + "' exited with " + std::to_string(status));
    }
}

namespace {

/// Value in bytes of a line such as "MemFree:   123 kB".
std::uint64_t kilobytes(const std::string& line) {
    std::istringstream fields(line);
    std::string name;
    std::uint64_t value = 0;
    fields >> name >> value;
    return value * KiB;
}

/// Whether a line of maps or smaps opens the mapping that holds the address.
bool heads_mapping_of(const std::string& line, std::uintptr_t address) {
    std::uintptr_t start = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::istringstream fields(line);
    fields >> std::hex >> start >> dash >> end;
    return fields && dash == '-' && start <= address && address < end;
}

bool heads_any_mapping(const std::string& line) {
    const auto dash = line.find('-');
    return dash != std::string::npos && dash != 0 &&
           line.find_first_not_of("0123456789abcdef") == dash;
}

} // namespace

std::uint64_t meminfo(const std::string& field) {
    std::istringstream lines(read_text("/proc/meminfo"));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(field + ":")) {
            return kilobytes(line);
        }
    }
    throw std::runtime_error("/proc/meminfo has no " + field);
}

std::uint64_t smaps(const void* address, const std::string& field) {
    std::istringstream lines(read_text("/proc/self/smaps"));
    bool inside = false;
    for (std::string line; std::getline(lines, line);) {
        if (heads_any_mapping(line)) {
            inside = heads_mapping_of(line, reinterpret_cast<std::uintptr_t>(address));
        } else if (inside && line.starts_with(field + ":")) {
            return kilobytes(line);
        }
    }
    return 0;
}

std::string maps_line(const void* address) {
    std::istringstream lines(read_text("/proc/self/maps"));
    for (std::string line; std::getline(lines, line);) {
        if (heads_mapping_of(line, reinterpret_cast<std::uintptr_t>(address))) {
            return line;
        }
    }
    return {};
}

std::optional<std::string> find_device(const std::string& class_name, const std::string& ibdev) {
    const std::filesystem::path devices = "/sys/class/" + class_name;
    if (!std::filesystem::exists(devices)) {
        return std::nullopt;
    }
    for (const auto& entry : std::filesystem::directory_iterator(devices)) {
        // It may go between the list and the look; then it is not read.
        std::ifstream file(entry.path() / "ibdev");
        std::string owner;
        if (file >> owner && owner == ibdev) {
            return entry.path().filename().string();
        }
    }
    return std::nullopt;
}

std::string device_of(const std::string& class_name, const std::string& ibdev) {
    const std::optional<std::string> found = find_device(class_name, ibdev);
    if (!found) {
        throw std::runtime_error("no device of " + class_name + " belongs to " + ibdev);
    }
    return *found;
}

std::size_t open_descriptors() {
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"), closedir);
    if (!directory) {
        fail("/proc/self/fd");
    }
    std::size_t count = 0;
    while (const dirent* entry = readdir(directory.get())) {
        if (entry->d_name[0] != '.') {
            ++count;
        }
    }
    return count - 1; // the directory's own
}

bool eventually(const std::function<bool()>& condition) {
    using namespace std::chrono_literals;
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
        // Before the look, so that a processor that was away does not end it unlooked.
        const bool last = std::chrono::steady_clock::now() > end;
        if (condition()) {
            return true;
        }
        if (last) {
            return false;
        }
        std::this_thread::sleep_for(5ms);
    }
}

void unload_module() {
    const bool gone = eventually([] {
        const bool unloaded = syscall(SYS_delete_module, "hcamem", O_NONBLOCK) == 0;
        if (!unloaded && errno != EWOULDBLOCK) {
            fail("unload hcamem");
        }
        return unloaded;
    });
    if (!gone) {
        fail("unload hcamem", EWOULDBLOCK);
    }
}

ModuleParameter::ModuleParameter(std::string name, std::uint64_t value)
    : path_("/sys/module/hcamem/parameters/" + std::move(name)), old_(read_text(path_)) {
    write_text(path_, std::to_string(value));
}

ModuleParameter::~ModuleParameter() {
    try {
        write_text(path_, old_);
    } catch (const std::exception& error) {
        std::cerr << "cannot restore " << path_ << ": " << error.what() << '\n';
        std::abort();
    }
}

} // namespace support
