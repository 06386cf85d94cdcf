// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "os/mapping.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <sys/mman.h>

#include "error/message.h"

namespace hcamem::core {
namespace {

constexpr int reserved_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/// Whether nothing but inaccessible anonymous memory is mapped at the range.
bool is_reserved(void* address, std::size_t bytes) noexcept {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(
        std::fopen("/proc/self/maps", "re"), [](std::FILE* file) { return std::fclose(file); });
    if (maps == nullptr) {
        return false;
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    std::uintptr_t covered = begin;
    char line[512] = {};
    while (covered < begin + bytes && std::fgets(line, sizeof line, maps.get()) != nullptr) {
        // from-to rights offset major:minor inode name
        char* at = nullptr;
        const std::uintptr_t from = std::strtoull(line, &at, 16);
        const std::uintptr_t to = std::strtoull(at + 1, &at, 16);
        const char* const rights = at + 1;
        std::strtoull(rights + std::strlen("rwxp "), &at, 16);
        at = std::strchr(at + 1, ' ');
        if (to <= covered || at == nullptr) {
            continue;
        }
        const bool anonymous = std::strtoull(at, nullptr, 10) == 0;
        if (from > covered || !anonymous || std::strncmp(rights, "---p", 4) != 0) {
            return false;
        }
        covered = to;
    }
    return covered >= begin + bytes;
}

} // namespace

int mapping::make_table(std::size_t bytes, bool wipe_in_child) noexcept {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, reserved_flags, -1, 0);
    if (memory == MAP_FAILED || (wipe_in_child && madvise(memory, bytes, MADV_WIPEONFORK) != 0)) {
        const int error = errno;
        if (memory != MAP_FAILED) {
            munmap(memory, bytes);
        }
        return fail(ENOMEM, "%s of address space for a table of the pool: %s",
                    size_text(bytes).c_str(), strerrordesc_np(error));
    }
    madvise(memory, bytes, MADV_DONTDUMP); // a core dump would hold its holes as zeros
    reset();
    address_ = memory;
    bytes_ = bytes;
    return 0;
}

int mapping::reserve(std::size_t bytes, std::size_t align) noexcept {
    void* memory = mmap(nullptr, bytes + align, PROT_NONE, reserved_flags, -1, 0);
    if (memory == MAP_FAILED) {
        return fail(ENOMEM,
                    "%s of address space for the pool's maximum: %s; ask for a smaller maximum "
                    "(HCAMEM_MAXIMUM) or raise the limit (ulimit -v)",
                    size_text(bytes).c_str(), strerrordesc_np(errno));
    }
    auto* const begin = static_cast<std::byte*>(memory);
    const std::size_t head = (align - reinterpret_cast<std::uintptr_t>(begin) % align) % align;
    if (head != 0) {
        munmap(begin, head);
    }
    if (head != align) {
        munmap(begin + head + bytes, align - head);
    }
    reset();
    address_ = begin + head;
    bytes_ = bytes;
    return 0;
}

int mapping::map_shared(int descriptor, std::size_t bytes) noexcept {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) {
        const int error = errno;
        return fail(error, "mmap of %s of shared memory: %s", size_text(bytes).c_str(),
                    strerrordesc_np(error));
    }
    reset();
    address_ = memory;
    bytes_ = bytes;
    return 0;
}

void mapping::reset() noexcept {
    if (address_ != nullptr) {
        munmap(address_, bytes_);
        address_ = nullptr;
        bytes_ = 0;
    }
}

void mapping::leave_out(std::byte* begin, std::byte* end) noexcept {
    const auto before = static_cast<std::size_t>(begin - data());
    if (before != 0) {
        munmap(address_, before);
    }
    bytes_ -= static_cast<std::size_t>(end - data());
    address_ = bytes_ != 0 ? end : nullptr;
}

void make_present(std::byte* begin, std::size_t bytes) noexcept {
    if (madvise(begin, bytes, MADV_POPULATE_WRITE) == 0) {
        return;
    }
    // Kernels before 5.14, and device mappings: one write to each page.
    constexpr std::size_t kernel_page = 4096;
    for (std::size_t offset = 0; offset < bytes; offset += kernel_page) {
        *static_cast<volatile std::byte*>(begin + offset) = std::byte{0};
    }
}

void* map_wiped(std::size_t bytes) noexcept {
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    if (madvise(memory, bytes, MADV_WIPEONFORK) != 0) {
        munmap(memory, bytes);
        return nullptr;
    }
    return memory;
}

bool unmap_to_reserved(void* address, std::size_t bytes) noexcept {
    return mmap(address, bytes, PROT_NONE, reserved_flags | MAP_FIXED, -1, 0) != MAP_FAILED;
}

bool restore_reserved(void* address, std::size_t bytes) noexcept {
    void* got = mmap(address, bytes, PROT_NONE, reserved_flags | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == address) {
        return true;
    }
    if (got != MAP_FAILED) {
        munmap(got, bytes); // a kernel before 4.17 takes the flag for a mere hint
        return false;
    }
    return errno == EEXIST && is_reserved(address, bytes);
}

} // namespace hcamem::core
