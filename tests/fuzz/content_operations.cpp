// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the pages hold: written and read by the process itself and by the kernel for it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "guarded.hpp"
#include "operations.hpp"

namespace fuzz {

namespace {

/// How often to look for memory that may be written.
constexpr int tries = 4;

bool readable(const Area& area) {
    return (area.prot & (PROT_READ | PROT_WRITE)) != 0;
}

/// Writes a word at an address of this process. Returns an errno, or 0.
using Writer = int (*)(std::uintptr_t address, std::uint64_t word);

int by_store(std::uintptr_t address, std::uint64_t word) {
    return store(address, word) ? 0 : EFAULT;
}

int by_process_vm(std::uintptr_t address, std::uint64_t word) {
    const iovec from{&word, sizeof word};
    const iovec to{pointer(address), sizeof word};
    return process_vm_writev(getpid(), &from, 1, &to, 1, 0) == sizeof word ? 0 : errno;
}

int by_read(std::uintptr_t address, std::uint64_t word) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
        return errno;
    }
    const support::UniqueFd out(ends[0]);
    const support::UniqueFd in(ends[1]);
    if (write(in.get(), &word, sizeof word) != sizeof word) {
        return errno;
    }
    return read(out.get(), pointer(address), sizeof word) == sizeof word ? 0 : errno;
}

int by_own_memory(std::uintptr_t address, std::uint64_t word) {
    const support::UniqueFd memory(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
    if (!memory.valid()) {
        return errno;
    }
    const ssize_t put = pwrite(memory.get(), &word, sizeof word, static_cast<off_t>(address));
    return put == sizeof word ? 0 : errno;
}

/// A new version of one page. False if the writer cannot write there.
bool write_page(Process& process, const Area& area, std::size_t page, Writer writer) {
    const Version before = area.memory->version(page);
    const Version after = process.fresh_version();
    const std::uintptr_t address = area.start + (page - area.first) * page_bytes;
    // Killed on the way, the page would hold some of both.
    area.memory->set_version(page, unknown);
    for (const Word& word : words_of_page(area.memory->key(), page, after)) {
        const int error = writer(address + word.offset, word.value);
        if (error != 0) {
            process.allow("writing a page", error,
                          {EFAULT, EIO, EPERM, ENOMEM, EMFILE, ENFILE, ENOSYS});
            if (word.offset == 0) {
                area.memory->set_version(page, before);
            }
            return false;
        }
    }
    area.memory->set_version(page, after);
    return true;
}

/// What /proc/self/mem or process_vm_readv() gave for the bytes from an address of the area on.
void check_bytes(Process& process, const Area& area, std::size_t offset,
                 std::span<const unsigned char> bytes) {
    while (!bytes.empty()) {
        const std::size_t in_page = offset % page_bytes;
        const std::size_t length = std::min(bytes.size(), page_bytes - in_page);
        if (const auto what = check_copy(bytes.first(length), *area.memory,
                                         area.first + offset / page_bytes, in_page)) {
            process.wrong(*what);
        }
        bytes = bytes.subspan(length);
        offset += length;
    }
}

} // namespace

Outcome write_pages(Process& process, Random& random) {
    if (process.areas.empty()) {
        return Outcome::idle;
    }
    Area area = process.areas.pick(random);
    for (int i = 0; i < tries && area.memory->frozen(); ++i) {
        area = process.areas.pick(random);
    }
    const bool allowed = (area.prot & PROT_WRITE) != 0;
    const Writer writer = random.one_of<Writer>(
        {by_store, by_store, by_store, by_store, by_read, by_process_vm, by_own_memory});
    if (area.memory->frozen()) {
        return Outcome::idle;
    }
    if (!allowed) {
        // /proc/self/mem may write what only it can: private memory.
        if (writer == by_own_memory && !area.memory->device()) {
            return Outcome::idle;
        }
        process.note("forbidden write", {area.start});
        if (writer(area.start, ~std::uint64_t{0}) == 0) {
            process.wrong(
                text("a mapping at ", hex(area.start), " with prot ", area.prot, " was written"));
        }
        process.verify(area, random);
        return Outcome::refused;
    }
    const Range range = some_of(area, random);
    const std::size_t count = std::min<std::size_t>(range.pages, random.one_in(8) ? 512 : 8);
    process.note("write", {range.start, count});
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t page = area.first + (range.start - area.start) / page_bytes + i;
        if (!write_page(process, area, page, writer)) {
            if (writer == by_store) {
                process.wrong(text("a mapping at ", hex(range.start + i * page_bytes),
                                   " with prot ", area.prot, " cannot be written"));
            }
            return Outcome::refused;
        }
    }
    return Outcome::done;
}

Outcome verify_pages(Process& process, Random& random) {
    if (process.areas.empty()) {
        return Outcome::idle;
    }
    const Area area = process.areas.pick(random);
    process.note("verify", {area.start, area.pages, static_cast<std::uint64_t>(area.prot)});
    process.verify(area, random);
    return Outcome::done;
}

Outcome access_own_memory(Process& process, Random& random) {
    if (process.areas.empty()) {
        return Outcome::idle;
    }
    const Area area = process.areas.pick(random);
    const support::UniqueFd memory(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
    if (!memory.valid()) {
        process.allow("/proc/self/mem", errno, {ENOMEM, EMFILE, ENFILE});
        return Outcome::refused;
    }
    std::vector<unsigned char> bytes(random.between(1, 3 * page_bytes));
    const std::size_t offset = random.below(area.bytes());
    bytes.resize(std::min(bytes.size(), area.bytes() - offset));
    process.note("pread of own memory", {area.start + offset, bytes.size()});
    const ssize_t got =
        pread(memory.get(), bytes.data(), bytes.size(), static_cast<off_t>(area.start + offset));
    if (got < 0) {
        process.allow("pread of own memory", errno, {EIO, EFAULT, ENOMEM});
        // The driver's own way for debuggers looks at no protection.
        return Outcome::refused;
    }
    check_bytes(process, area, offset, {bytes.data(), static_cast<std::size_t>(got)});
    return Outcome::done;
}

Outcome copy_by_kernel(Process& process, Random& random) {
    if (process.areas.empty()) {
        return Outcome::idle;
    }
    const Area area = process.areas.pick(random);
    std::vector<unsigned char> bytes(random.between(1, 3 * page_bytes));
    const std::size_t offset = random.below(area.bytes());
    bytes.resize(std::min(bytes.size(), area.bytes() - offset));
    const iovec to{bytes.data(), bytes.size()};
    const iovec from{pointer(area.start + offset), bytes.size()};
    process.note("process_vm_readv", {area.start + offset, bytes.size()});
    const ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    if (got < 0) {
        process.allow("process_vm_readv", errno, {EFAULT, ENOMEM, EPERM});
        return Outcome::refused;
    }
    if (!readable(area)) {
        process.wrong(text("process_vm_readv() read PROT_NONE at ", hex(area.start)));
    }
    check_bytes(process, area, offset, {bytes.data(), static_cast<std::size_t>(got)});
    return Outcome::done;
}

} // namespace fuzz
