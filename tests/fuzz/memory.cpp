// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "memory.hpp"

#include <sys/mman.h>

#include <cstring>
#include <memory>

#include "guarded.hpp"
#include "report.hpp"
#include "support/failure.hpp"

namespace fuzz {

namespace {

constexpr std::array<std::size_t, 4> offsets{0, 8, 2040, 4088};

std::uint64_t place(std::size_t page, Version version) {
    return std::uint64_t{page} << 32 | version;
}

std::string difference(std::uintptr_t address, std::uint64_t found, std::uint64_t expected,
                       const Memory& memory, std::size_t page) {
    return text("at ", hex(address), " is ", hex(found), ", not ", hex(expected), ": page ", page,
                " of ", memory.pages(), ", region ", hex(memory.key()), ", version ",
                hex(memory.version(page)), memory.device() ? ", device" : ", anonymous",
                memory.foreign() ? ", foreign" : "");
}

/// Takes the version from the page; nothing if it names another region or page, or is torn.
std::optional<Version> learn(std::uintptr_t address, const Memory& memory, std::size_t page) {
    std::array<std::uint64_t, 4> found{};
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        const auto word = load(address + offsets[i]);
        if (!word) {
            return std::nullopt;
        }
        found[i] = *word;
    }
    const auto version = static_cast<Version>(found[1]);
    const auto expected = words_of_page(memory.key(), page, version);
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (found[i] != expected[i].value) {
            return std::nullopt;
        }
    }
    return version;
}

std::optional<std::string> cannot_read(std::uintptr_t address, const Memory& memory,
                                       std::size_t page) {
    return text(hex(address), " cannot be read: page ", page, " of ", memory.pages(), ", region ",
                hex(memory.key()));
}

std::optional<std::string> check_word(std::uintptr_t address, std::uint64_t expected,
                                      const Memory& memory, std::size_t page) {
    const auto found = load(address);
    if (!found) {
        return cannot_read(address, memory, page);
    }
    if (*found != expected) {
        return difference(address, *found, expected, memory, page);
    }
    return std::nullopt;
}

} // namespace

std::array<Word, 4> words_of_page(std::uint64_t key, std::size_t page, Version version) {
    if (version == zeros) {
        return {{{offsets[0], 0}, {offsets[1], 0}, {offsets[2], 0}, {offsets[3], 0}}};
    }
    const std::uint64_t where = place(page, version);
    return {{{offsets[0], key},
             {offsets[1], where},
             {offsets[2], mix(key, where)},
             {offsets[3], ~mix(key, where)}}};
}

Memory::Memory(std::uint64_t key, std::size_t pages, Kind kind, hcamem_fork fork)
    : key_(key), pages_(pages), kind_(kind), fork_(fork) {
    const int sharing = kind == Kind::device ? MAP_SHARED : MAP_PRIVATE;
    const std::size_t entries = pages + 1;
    void* table = mmap(nullptr, entries * sizeof(std::atomic<Version>), PROT_READ | PROT_WRITE,
                       sharing | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED) {
        support::fail("memory for the versions of pages");
    }
    table_ = {static_cast<std::atomic<Version>*>(table), entries};
}

Memory::~Memory() {
    munmap(table_.data(), table_.size_bytes());
}

Version Memory::version(std::size_t page) const {
    return table_[page + 1].load(std::memory_order_relaxed);
}

void Memory::set_version(std::size_t page, Version version) {
    table_[page + 1].store(version, std::memory_order_relaxed);
}

void Memory::set_versions(std::size_t first, std::size_t count, Version version) {
    for (std::size_t page = first; page < first + count; ++page) {
        set_version(page, version);
    }
}

void Memory::freeze() {
    table_[0] = 1;
}

bool Memory::frozen() const {
    return table_[0] != 0;
}

void Memory::make_foreign() {
    foreign_ = true;
    freeze();
    set_versions(0, pages_, unknown);
}

std::optional<std::string> check_page(std::uintptr_t address, Memory& memory, std::size_t page,
                                      Random& random) {
    Version version = memory.version(page);
    if (version == unknown) {
        if (!memory.foreign()) {
            return load(address) ? std::nullopt : cannot_read(address, memory, page);
        }
        const auto learned = learn(address, memory, page);
        if (!learned) {
            return text("the page at ", hex(address), " is not page ", page, " of region ",
                        hex(memory.key()), " that another process sent: its words are ",
                        hex(load(address).value_or(~0U)), " and ",
                        hex(load(address + offsets[1]).value_or(~0U)));
        }
        version = *learned;
        memory.set_version(page, version);
    }
    const auto words = words_of_page(memory.key(), page, version);
    for (const Word& word : words) {
        if (auto wrong = check_word(address + word.offset, word.value, memory, page)) {
            return wrong;
        }
    }
    const std::size_t other = random.below(page_bytes / 8) * 8;
    for (const Word& word : words) {
        if (word.offset == other) {
            return std::nullopt;
        }
    }
    return check_word(address + other, 0, memory, page);
}

std::optional<std::string> check_all(std::uintptr_t start, Memory& memory) {
    Random random(memory.key());
    for (std::size_t page = 0; page < memory.pages(); ++page) {
        if (auto wrong = check_page(start + page * page_bytes, memory, page, random)) {
            return wrong;
        }
    }
    return std::nullopt;
}

std::optional<std::string> fill_new(std::uintptr_t start, Memory& memory) {
    if (auto wrong = check_all(start, memory)) {
        return wrong;
    }
    for (std::size_t page = 0; page < memory.pages(); ++page) {
        for (const Word& word : words_of_page(memory.key(), page, 1)) {
            if (!store(start + page * page_bytes + word.offset, word.value)) {
                return text(hex(start + page * page_bytes), " cannot be written");
            }
        }
        memory.set_version(page, 1);
    }
    return std::nullopt;
}

std::optional<std::string> check_copy(std::span<const unsigned char> bytes, const Memory& memory,
                                      std::size_t page, std::size_t offset) {
    const Version version = memory.version(page);
    if (version == unknown) {
        return std::nullopt;
    }
    alignas(8) std::array<unsigned char, page_bytes> expected{};
    for (const Word& word : words_of_page(memory.key(), page, version)) {
        std::memcpy(expected.data() + word.offset, &word.value, sizeof word.value);
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] != expected[offset + i]) {
            return text("a copy holds ", hex(bytes[i]), ", not ", hex(expected[offset + i]),
                        ", at offset ", offset + i, " of page ", page, ", region ",
                        hex(memory.key()), ", version ", hex(version));
        }
    }
    return std::nullopt;
}

} // namespace fuzz
