// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Pools for the tests. HCAMEM_TEST_SOURCE=device|memory (default memory) says where
// they get their memory, so that one program tests both.
#ifndef TESTS_UNIT_SUPPORT_POOLS_HPP
#define TESTS_UNIT_SUPPORT_POOLS_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>

#include <gtest/gtest.h>

#include <hcamem.h>

namespace unit {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr std::size_t GiB = 1024 * MiB;
constexpr std::size_t kernel_page = 4 * KiB;

/// HCAMEM_DEVICE or HCAMEM_MEMORY.
std::uint32_t test_source();

/// Options for that source, independent of the environment: no initial memory, 64 MiB at most.
hcamem_options test_options();

struct close_pool {
    void operator()(hcamem_pool* pool) const noexcept { hcamem_pool_close(pool); }
};
using pool_ptr = std::unique_ptr<hcamem_pool, close_pool>;

/// Makes a pool or throws std::runtime_error with the library's message.
pool_ptr make_pool(const hcamem_options& options = test_options());

hcamem_stats stats_of(const hcamem_pool* pool);

/// A way to map slabs, for suites that run over all of them.
struct mapping_mode {
    const char* name;
    std::uint32_t mapping;
};
inline constexpr mapping_mode mapping_modes[] = {{"huge", HCAMEM_MAP_HUGE},
                                                 {"pages", HCAMEM_MAP_PAGES}};
inline std::ostream& operator<<(std::ostream& out, const mapping_mode& mode) {
    return out << mode.name;
}

/// A suite that makes its pools with each mapping mode of the source.
class EachMapping : public testing::TestWithParam<mapping_mode> {
  protected:
    static hcamem_options options() {
        hcamem_options chosen = test_options();
        chosen.mapping = GetParam().mapping;
        return chosen;
    }
};

#define INSTANTIATE_EACH_MAPPING(suite)                                                            \
    INSTANTIATE_TEST_SUITE_P(Mapping, suite, testing::ValuesIn(unit::mapping_modes),               \
                             [](const auto& info) { return info.param.name; })

} // namespace unit

#endif
