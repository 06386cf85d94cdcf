// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "node.hpp"

#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "failure.hpp"
#include "guest.hpp"

namespace support {

namespace {

const std::string class_directory = "/sys/class/hcamem/";

unsigned char pattern_byte(std::size_t position, unsigned seed) {
    // The page number goes in, and no byte is zero: a wiped page never matches.
    return static_cast<unsigned char>(
        (position * 6 + (position >> 12) * 34 + std::size_t{seed} * 102) | 1);
}

} // namespace

std::vector<std::string> Node::names() {
    std::vector<std::string> names;
    if (std::filesystem::exists(class_directory)) {
        for (const auto& entry : std::filesystem::directory_iterator(class_directory)) {
            names.push_back(entry.path().filename());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string Node::ibdev_of(const std::string& name) {
    std::string ibdev = read_text(class_directory + name + "/ibdev");
    if (!ibdev.empty() && ibdev.back() == '\n') {
        ibdev.pop_back();
    }
    return ibdev;
}

std::optional<std::string> Node::name_of(const std::string& ibdev) {
    return find_device("hcamem", ibdev);
}

std::string Node::path_of(const std::string& ibdev) {
    const auto name = name_of(ibdev);
    if (!name) {
        throw std::runtime_error("no hcamem node belongs to " + ibdev);
    }
    return "/dev/infiniband/" + *name;
}

Node::Node(const std::string& ibdev, int flags) {
    const std::string path = path_of(ibdev);
    fd_ = UniqueFd(must(open(path.c_str(), flags), path.c_str()));
}

int Node::try_info(hcamem_info& info) const {
    return ioctl(fd(), HCAMEM_IOC_INFO, &info) < 0 ? errno : 0;
}

int Node::try_create(hcamem_create& request) const {
    return ioctl(fd(), HCAMEM_IOC_CREATE, &request) < 0 ? errno : 0;
}

int Node::try_export(hcamem_export& request) const {
    return ioctl(fd(), HCAMEM_IOC_EXPORT, &request) < 0 ? errno : 0;
}

hcamem_info Node::info() const {
    hcamem_info info{};
    if (const int error = try_info(info)) {
        fail("HCAMEM_IOC_INFO", error);
    }
    return info;
}

UniqueFd Node::export_range(const void* addr, std::size_t length, std::uint64_t* offset) const {
    hcamem_export request{};
    request.addr = reinterpret_cast<std::uintptr_t>(addr);
    request.length = length;
    request.fd = -1;
    if (const int error = try_export(request)) {
        fail("HCAMEM_IOC_EXPORT", error);
    }
    if (offset != nullptr) {
        *offset = request.offset;
    }
    return UniqueFd(request.fd);
}

hcamem_create create_request(std::uint64_t size, RegionKind kind) {
    hcamem_create request{};
    request.size = size;
    request.mapping = kind.mapping;
    request.fork = kind.fork;
    request.numa_node = -1;
    return request;
}

Region::Region(const Node& node, std::uint64_t size, RegionKind kind) {
    hcamem_create request = create_request(size, kind);
    if (const int error = node.try_create(request)) {
        fail("HCAMEM_IOC_CREATE", error);
    }
    void* mapped = mmap(nullptr, static_cast<std::size_t>(request.size), PROT_READ | PROT_WRITE,
                        MAP_SHARED, node.fd(), static_cast<off_t>(request.offset));
    if (mapped == MAP_FAILED) {
        fail("mmap");
    }
    data_ = static_cast<unsigned char*>(mapped);
    size_ = static_cast<std::size_t>(request.size);
}

int Region::attempt(const Node& node, std::uint64_t size, RegionKind kind) {
    try {
        const Region region(node, size, kind);
        return 0;
    } catch (const std::system_error& error) {
        return error.code().value();
    }
}

Region::Region(Region&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Region& Region::operator=(Region&& other) noexcept {
    if (this != &other) {
        unmap();
        data_ = std::exchange(other.data_, nullptr);
        size_ = std::exchange(other.size_, 0);
    }
    return *this;
}

void Region::unmap() {
    if (data_ != nullptr) {
        munmap(std::exchange(data_, nullptr), std::exchange(size_, 0));
    }
}

void fill(std::span<unsigned char> bytes, unsigned seed) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = pattern_byte(i, seed);
    }
}

std::size_t first_difference(std::span<const unsigned char> bytes, unsigned seed,
                             std::size_t position) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] != pattern_byte(position + i, seed)) {
            return i;
        }
    }
    return bytes.size();
}

bool holds(std::span<const unsigned char> bytes, unsigned seed, std::size_t position) {
    return first_difference(bytes, seed, position) == bytes.size();
}

bool all_equal(std::span<const unsigned char> bytes, unsigned char value) {
    return bytes.empty() || (bytes[0] == value &&
                             std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

} // namespace support
