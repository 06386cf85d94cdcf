// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What a debugger may do follows the rights of the mapping.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kinds.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

class AccessRights : public MappingModes {};
INSTANTIATE_TEST_SUITE_P(, AccessRights, both_mappings, mapping_name);

off_t offset_of(const void* address) {
    return static_cast<off_t>(reinterpret_cast<intptr_t>(address));
}

} // namespace

TEST_P(AccessRights, proc_mem_writes_to_a_writable_mapping_and_not_to_a_read_only_one) {
    const UniqueFd memory(must(open("/proc/self/mem", O_RDWR | O_CLOEXEC), "/proc/self/mem"));
    const Node node;
    Region region(node, huge_size, kind());
    unsigned char* at = region.data() + 5;

    EXPECT_EQ(pwrite(memory.get(), "x", 1, offset_of(at)), 1);
    EXPECT_EQ(*at, 'x');
    ASSERT_EQ(mprotect(region.data(), region.size(), PROT_READ), 0);
    EXPECT_EQ(pwrite(memory.get(), "y", 1, offset_of(at)), -1);
    EXPECT_EQ(*at, 'x');
    char seen = 0;
    EXPECT_EQ(pread(memory.get(), &seen, 1, offset_of(at)), 1);
    EXPECT_EQ(seen, 'x');
}
