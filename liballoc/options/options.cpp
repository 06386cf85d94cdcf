// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "options/options.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "error/message.h"
#include "heap/size_class.h"
#include "options/environment.h"
#include "options/variables.h"

namespace hcamem::core {
namespace {

constexpr std::uint64_t default_maximum = std::uint64_t{64} << 30;
constexpr std::uint64_t largest_maximum = std::uint64_t{32} << 40; // page numbers fit 32 bits

constexpr std::uint64_t round_up(std::uint64_t bytes) noexcept {
    return bytes / slab_unit * slab_unit + (bytes % slab_unit != 0 ? slab_unit : 0);
}

int check(const hcamem_options& options) noexcept {
    constexpr std::uint32_t known = HCAMEM_OPT_DMABUF_ONLY | HCAMEM_OPT_PREFAULT |
                                    HCAMEM_OPT_MISUSE_ERROR | HCAMEM_OPT_RELIEVE |
                                    HCAMEM_OPT_LEAKS | HCAMEM_OPT_LEAK_STACKS | HCAMEM_OPT_POISON;
    if (options.source > HCAMEM_MEMORY) {
        return fail(EINVAL, "option source: %u is unknown", options.source);
    }
    if (options.mapping > HCAMEM_MAP_PAGES) {
        return fail(EINVAL, "option mapping: %u is unknown", options.mapping);
    }
    if (options.fork > HCAMEM_FORK_SHARE) {
        return fail(EINVAL, "option fork: %u is unknown", options.fork);
    }
    if ((options.flags & ~known) != 0) {
        return fail(EINVAL, "option flags: 0x%x is unknown", options.flags & ~known);
    }
    if (options.numa_node < -1) {
        return fail(EINVAL, "option numa_node: %d is neither a node nor -1", options.numa_node);
    }
    if (options.maximum > largest_maximum) {
        return fail(EINVAL, "option maximum: %" PRIu64 " bytes are more than %s", options.maximum,
                    size_text(largest_maximum).c_str());
    }
    if (options.initial > options.maximum) {
        return fail(EINVAL, "option initial: %s is more than the maximum of %s",
                    size_text(options.initial).c_str(), size_text(options.maximum).c_str());
    }
    return 0;
}

} // namespace

hcamem_options default_options() noexcept {
    hcamem_options options{};
    options.size = sizeof options;
    options.numa_node = -1;
    options.initial = slab_unit;
    options.maximum = default_maximum;
    return options;
}

hcamem_options options_from_environment() noexcept {
    static std::array<std::atomic<bool>, 32> said;
    hcamem_options options = default_options();
    std::size_t index = 0;
    for (const variable& each : variables()) {
        const char* text = environment(each.name);
        if (text != nullptr && !parse_value(each, text, options)) {
            warn_once(said[index], "%s=%s makes no sense and is ignored (%s)", each.name, text,
                      each.meaning);
        }
        ++index;
    }
    return options;
}

int read_options(const hcamem_options& given, hcamem_options& options) noexcept {
    if (given.size < first_options_bytes || given.size > 4096) {
        return fail(EINVAL,
                    "option size: %u bytes; hcamem_options_init() sets it to "
                    "sizeof(struct hcamem_options)",
                    given.size);
    }
    const auto* bytes = reinterpret_cast<const unsigned char*>(&given);
    if (std::any_of(bytes + std::min<std::size_t>(given.size, sizeof options), bytes + given.size,
                    [](unsigned char byte) { return byte != 0; })) {
        return fail(E2BIG, "the options have %u bytes and set one past the %zu this library knows",
                    given.size, sizeof options);
    }
    options = default_options();
    std::memcpy(&options, &given, std::min<std::size_t>(given.size, sizeof options));
    options.size = sizeof options;
    if (options.maximum == 0) {
        options.maximum = default_maximum;
    }
    const int result = check(options);
    if (result != 0) {
        return result;
    }
    options.maximum = round_up(options.maximum);
    options.initial = round_up(options.initial);
    options.growth = round_up(std::min(options.growth, options.maximum));
    return 0;
}

int describe_options(const hcamem_options& options, char* text, std::size_t size) noexcept {
    const hcamem_options defaults = default_options();
    std::size_t length = 0;
    for (const variable& each : variables()) {
        char value[64];
        char preset[64];
        print_value(each, options, value, sizeof value);
        print_value(each, defaults, preset, sizeof preset);
        const int line = std::snprintf(
            length < size ? text + length : nullptr, length < size ? size - length : 0,
            "%-18s %-9s (default %s) %s\n", each.name, value, preset, each.meaning);
        length += static_cast<std::size_t>(std::max(line, 0));
    }
    return static_cast<int>(length);
}

} // namespace hcamem::core
