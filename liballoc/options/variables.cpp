// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "options/variables.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "options/environment.h"

namespace hcamem::core {
namespace {

using kind = variable::kind;

constexpr std::array<variable, 15> table{{
    {.name = "HCAMEM_SOURCE",
     .meaning = "where memory comes from; auto: the device, without one ordinary memory",
     .type = kind::word,
     .word = &hcamem_options::source,
     .values = {"auto", "device", "memory"}},
    {.name = "HCAMEM_MAPPING",
     .meaning = "page-table entries; auto: huge where they can be pinned, else pages",
     .type = kind::word,
     .word = &hcamem_options::mapping,
     .values = {"auto", "huge", "pages"}},
    {.name = "HCAMEM_FORK",
     .meaning = "what a child finds at the addresses: zeros, nothing, the same memory",
     .type = kind::word,
     .word = &hcamem_options::fork,
     .values = {"zero", "dontcopy", "share"}},
    {.name = "HCAMEM_NUMA_NODE",
     .meaning = "NUMA node of the memory; -1: the HCA's",
     .type = kind::number},
    {.name = "HCAMEM_INITIAL",
     .meaning = "bytes obtained when the pool is made",
     .type = kind::bytes,
     .bytes = &hcamem_options::initial},
    {.name = "HCAMEM_GROWTH",
     .meaning = "bytes per slab; 0: an eighth of what there is, 2M to 64M",
     .type = kind::bytes,
     .bytes = &hcamem_options::growth},
    {.name = "HCAMEM_MAXIMUM",
     .meaning = "bytes of all slabs together",
     .type = kind::bytes,
     .bytes = &hcamem_options::maximum},
    {.name = "HCAMEM_HCA", .meaning = "name of the HCA, e.g. mlx5_0", .type = kind::text},
    {.name = "HCAMEM_REGISTER",
     .meaning = "dmabuf: register by dma-buf or not at all",
     .type = kind::flag,
     .flag = HCAMEM_OPT_DMABUF_ONLY,
     .values = {"auto", "dmabuf"}},
    {.name = "HCAMEM_PREFAULT",
     .meaning = "1: have every page of a slab present at once",
     .type = kind::flag,
     .flag = HCAMEM_OPT_PREFAULT,
     .values = {"0", "1"}},
    {.name = "HCAMEM_RELIEVE",
     .meaning = "1: a thread gives idle memory back when the kernel or the cgroup wants it",
     .type = kind::flag,
     .flag = HCAMEM_OPT_RELIEVE,
     .values = {"0", "1"}},
    {.name = "HCAMEM_LEAKS",
     .meaning = "1: closing a pool says which blocks are live",
     .type = kind::flag,
     .flag = HCAMEM_OPT_LEAKS,
     .values = {"0", "1"}},
    {.name = "HCAMEM_LEAK_STACKS",
     .meaning = "1: and where they were allocated; slow",
     .type = kind::flag,
     .flag = HCAMEM_OPT_LEAK_STACKS,
     .values = {"0", "1"}},
    {.name = "HCAMEM_POISON",
     .meaning = "1: find what writes to free blocks; slow",
     .type = kind::flag,
     .flag = HCAMEM_OPT_POISON,
     .values = {"0", "1"}},
    {.name = "HCAMEM_ON_MISUSE",
     .meaning = "double free, foreign pointer, wrong size: abort, or return an error",
     .type = kind::flag,
     .flag = HCAMEM_OPT_MISUSE_ERROR,
     .values = {"abort", "error"}},
}};

bool parse_number(const char* text, std::int32_t& number) noexcept {
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < -1 || value > INT32_MAX) {
        return false;
    }
    number = static_cast<std::int32_t>(value);
    return true;
}

} // namespace

std::span<const variable> variables() noexcept {
    return table;
}

bool parse_value(const variable& which, const char* text, hcamem_options& options) noexcept {
    switch (which.type) {
    case kind::word:
    case kind::flag:
        for (std::uint32_t index = 0; index < which.values.size(); ++index) {
            const char* word = which.values[index];
            if (word == nullptr || std::strcmp(word, text) != 0) {
                continue;
            }
            if (which.type == kind::word) {
                options.*which.word = index;
            } else if (index == 0) {
                options.flags &= ~which.flag;
            } else {
                options.flags |= which.flag;
            }
            return true;
        }
        return false;
    case kind::bytes:
        return parse_bytes(text, options.*which.bytes);
    case kind::number:
        return parse_number(text, options.numa_node);
    case kind::text:
        options.hca = text;
        return true;
    }
    return false;
}

void print_value(const variable& which, const hcamem_options& options, char* text,
                 std::size_t size) noexcept {
    switch (which.type) {
    case kind::word: {
        const std::uint32_t index = options.*which.word;
        std::snprintf(text, size, "%s", index < which.values.size() ? which.values[index] : "?");
        break;
    }
    case kind::flag:
        std::snprintf(text, size, "%s", which.values[(options.flags & which.flag) != 0 ? 1 : 0]);
        break;
    case kind::bytes: {
        std::uint64_t bytes = options.*which.bytes;
        constexpr const char* units[] = {"", "K", "M", "G", "T"};
        std::size_t unit = 0;
        while (unit < 4 && bytes != 0 && bytes % 1024 == 0) {
            bytes /= 1024;
            ++unit;
        }
        std::snprintf(text, size, "%" PRIu64 "%s", bytes, units[unit]);
        break;
    }
    case kind::number:
        std::snprintf(text, size, "%" PRId32, options.numa_node);
        break;
    case kind::text:
        std::snprintf(text, size, "%s", options.hca != nullptr ? options.hca : "first");
        break;
    }
}

} // namespace hcamem::core
