// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What a child is said to have mapped stays right when its copy of a region becomes memory
// of its own and is unmapped.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "kinds.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

class ForkAccounting : public MappingModes {};
INSTANTIATE_TEST_SUITE_P(, ForkAccounting, both_mappings, mapping_name);

/// Bytes of a field of /proc/self/status.
std::uint64_t status(const std::string& field) {
    const auto text = read_text("/proc/self/status");
    return std::stoull(text.substr(text.find("\n" + field + ":") + field.size() + 2)) * KiB;
}

} // namespace

TEST_P(ForkAccounting, R12_the_childs_data_size_counts_the_memory_while_it_is_mapped) {
    const Node node;
    Region region(node, 8 * MiB, kind());
    const std::uint64_t parent = status("VmData");
    EXPECT_TRUE(succeeds_in_child({}, [&](Channel&) {
        const std::uint64_t before = status("VmData");
        require(before >= parent + region.size(), "the child's own memory is data");
        must(mprotect(region.data(), MiB, PROT_READ), "mprotect");
        must(munmap(region.data(), region.size()), "munmap");
        require(status("VmData") <= before - region.size(), "VmData after munmap");
        // A count below zero would refuse every further mapping.
        const rlimit limit{status("VmData") + 64 * MiB, RLIM_INFINITY};
        must(setrlimit(RLIMIT_DATA, &limit), "setrlimit");
        require(mmap(nullptr, MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
                    MAP_FAILED,
                "mmap below RLIMIT_DATA");
    }));
}
