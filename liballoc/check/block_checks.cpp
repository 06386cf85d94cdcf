// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "check/block_checks.h"

#include <cerrno>
#include <cstring>
#include <new>

#include <hcamem.h>

#include "error/message.h"

// Debian's valgrind has it; a library that was built without does not tell valgrind.
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define HCAMEM_VALGRIND 1
#endif

namespace hcamem::core {
namespace {

constexpr unsigned char poison_byte = 0xdb;

#if defined(HCAMEM_VALGRIND)
bool runs_under_valgrind() noexcept {
    return RUNNING_ON_VALGRIND != 0;
}
void tell_live(const void* block, std::size_t bytes) noexcept {
    VALGRIND_MALLOCLIKE_BLOCK(block, bytes, 0, 0);
}
void tell_free(const void* block) noexcept {
    VALGRIND_FREELIKE_BLOCK(block, 0);
}
void tell_accessible(const void* block, std::size_t bytes) noexcept {
    VALGRIND_MAKE_MEM_DEFINED(block, bytes);
}
void tell_inaccessible(const void* block, std::size_t bytes) noexcept {
    VALGRIND_MAKE_MEM_NOACCESS(block, bytes);
}
#else
bool runs_under_valgrind() noexcept {
    return false;
}
void tell_live(const void* /*block*/, std::size_t /*bytes*/) noexcept {}
void tell_free(const void* /*block*/) noexcept {}
void tell_accessible(const void* /*block*/, std::size_t /*bytes*/) noexcept {}
void tell_inaccessible(const void* /*block*/, std::size_t /*bytes*/) noexcept {}
#endif

/// The first byte that is not the pattern; nullptr: all are.
const void* first_written(const void* memory, std::size_t bytes) noexcept {
    const auto* const begin = static_cast<const unsigned char*>(memory);
    // Each byte is the one before it, and the first is the pattern.
    if (bytes == 0 || (*begin == poison_byte && std::memcmp(begin, begin + 1, bytes - 1) == 0)) {
        return nullptr;
    }
    const unsigned char* at = begin;
    while (*at == poison_byte) {
        ++at;
    }
    return at;
}

} // namespace

int block_checks::open(std::uint32_t flags) noexcept {
    poison_ = (flags & HCAMEM_OPT_POISON) != 0;
    valgrind_ = runs_under_valgrind();
    if ((flags & HCAMEM_OPT_LEAK_STACKS) != 0) {
        log_.reset(new (std::nothrow) allocation_log);
        if (log_ == nullptr) {
            return fail_static(ENOMEM, "no memory to log allocations");
        }
    }
    return 0;
}

void block_checks::close() noexcept {
    poison_ = false;
    valgrind_ = false;
    log_.reset();
}

void block_checks::add_memory(void* memory, std::size_t bytes) const noexcept {
    if (poison_) {
        std::memset(memory, poison_byte, bytes);
    }
    if (valgrind_) {
        tell_inaccessible(memory, bytes);
    }
}

bool block_checks::hand_out(void* block, std::size_t bytes, const void*& where) const noexcept {
    where = nullptr;
    if (poison_) {
        if (valgrind_) {
            tell_accessible(block, bytes);
        }
        where = first_written(block, bytes);
    }
    if (valgrind_) {
        tell_live(block, bytes);
    }
    if (log_ != nullptr) {
        log_->add(block, bytes);
    }
    return where == nullptr;
}

void block_checks::take_back(void* block, std::size_t bytes) const noexcept {
    if (log_ != nullptr) {
        log_->remove(block);
    }
    if (poison_) {
        std::memset(block, poison_byte, bytes);
    }
    if (valgrind_) {
        tell_free(block);
    }
}

void block_checks::divide(void* block, std::size_t bytes) const noexcept {
    if (valgrind_) {
        tell_free(block); // it takes no blocks within a block
        tell_inaccessible(block, bytes);
    }
}

void block_checks::unite(void* block, std::size_t bytes) const noexcept {
    if (valgrind_) {
        tell_live(block, bytes);
    }
}

} // namespace hcamem::core
