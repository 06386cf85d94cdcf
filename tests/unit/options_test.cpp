// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Options in code and in the environment.
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "support/child.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

class environment_variable {
  public:
    environment_variable(const char* name, const char* value) : name_(name) {
        setenv(name, value, 1);
    }
    environment_variable(const environment_variable&) = delete;
    environment_variable& operator=(const environment_variable&) = delete;
    ~environment_variable() { unsetenv(name_); }

  private:
    const char* name_;
};

hcamem_options fresh() {
    hcamem_options options;
    std::memset(&options, 0xee, sizeof options);
    hcamem_options_init(&options, sizeof options);
    return options;
}

TEST(Options, defaults_are_as_documented) {
    const hcamem_options options = fresh();
    EXPECT_EQ(options.size, sizeof options);
    EXPECT_EQ(options.source, static_cast<std::uint32_t>(HCAMEM_AUTO));
    EXPECT_EQ(options.mapping, static_cast<std::uint32_t>(HCAMEM_MAP_AUTO));
    EXPECT_EQ(options.fork, static_cast<std::uint32_t>(HCAMEM_FORK_ZERO));
    EXPECT_EQ(options.numa_node, -1);
    EXPECT_EQ(options.flags, 0U);
    EXPECT_EQ(options.initial, 2 * MiB);
    EXPECT_EQ(options.growth, 0U);
    EXPECT_EQ(options.maximum, 64 * GiB);
    EXPECT_EQ(options.hca, nullptr);
}

TEST(Options, the_environment_sets_every_field) {
    const environment_variable all[] = {
        {"HCAMEM_SOURCE", "memory"},   {"HCAMEM_MAPPING", "pages"}, {"HCAMEM_FORK", "share"},
        {"HCAMEM_NUMA_NODE", "3"},     {"HCAMEM_INITIAL", "0"},     {"HCAMEM_GROWTH", "8M"},
        {"HCAMEM_MAXIMUM", "1G"},      {"HCAMEM_HCA", "mlx5_7"},    {"HCAMEM_REGISTER", "dmabuf"},
        {"HCAMEM_ON_MISUSE", "error"}, {"HCAMEM_PREFAULT", "1"}};
    const hcamem_options options = fresh();
    EXPECT_EQ(options.source, static_cast<std::uint32_t>(HCAMEM_MEMORY));
    EXPECT_EQ(options.mapping, static_cast<std::uint32_t>(HCAMEM_MAP_PAGES));
    EXPECT_EQ(options.fork, static_cast<std::uint32_t>(HCAMEM_FORK_SHARE));
    EXPECT_EQ(options.numa_node, 3);
    EXPECT_EQ(options.initial, 0U);
    EXPECT_EQ(options.growth, 8 * MiB);
    EXPECT_EQ(options.maximum, GiB);
    EXPECT_STREQ(options.hca, "mlx5_7");
    EXPECT_EQ(options.flags,
              static_cast<std::uint32_t>(HCAMEM_OPT_DMABUF_ONLY | HCAMEM_OPT_PREFAULT |
                                         HCAMEM_OPT_MISUSE_ERROR));
}

TEST(Options, a_variable_that_makes_no_sense_is_ignored_with_one_warning) {
    for (const char* bad : {"-1", "1X", "12KB", " 1", "18446744073709551616", "99999999999999T"}) {
        const environment_variable variable("HCAMEM_GROWTH", bad);
        EXPECT_EQ(fresh().growth, 0U) << bad;
    }
    EXPECT_EQ(run_in_child(birth::fork,
                           [] {
                               const environment_variable variable("HCAMEM_FORK", "maybe");
                               testing::internal::CaptureStderr();
                               fresh();
                               fresh();
                               const std::string said = testing::internal::GetCapturedStderr();
                               const std::size_t at = said.find("HCAMEM_FORK=maybe");
                               return at != std::string::npos &&
                                              said.find("HCAMEM_FORK=maybe", at + 1) ==
                                                  std::string::npos
                                          ? 0
                                          : 1;
                           }),
              0);
}

TEST(Options, the_program_wins_over_the_environment) {
    const environment_variable variable("HCAMEM_MAXIMUM", "1G");
    hcamem_options options = test_options();
    options.maximum = 4 * MiB;
    EXPECT_EQ(stats_of(make_pool(options).get()).maximum, 4 * MiB);
}

TEST(Options, one_call_lists_them_all_with_values_and_defaults) {
    hcamem_options options = test_options();
    options.growth = 8 * MiB;
    const int length = hcamem_options_describe(&options, nullptr, 0);
    ASSERT_GT(length, 0);
    std::string text(static_cast<std::size_t>(length), '\0');
    EXPECT_EQ(hcamem_options_describe(&options, text.data(), text.size() + 1), length);
    EXPECT_EQ(std::strlen(text.c_str()), text.size());
    for (const char* name : {"HCAMEM_SOURCE", "HCAMEM_MAPPING", "HCAMEM_FORK", "HCAMEM_NUMA_NODE",
                             "HCAMEM_INITIAL", "HCAMEM_GROWTH", "HCAMEM_MAXIMUM", "HCAMEM_HCA",
                             "HCAMEM_REGISTER", "HCAMEM_PREFAULT", "HCAMEM_ON_MISUSE"}) {
        EXPECT_NE(text.find(name), std::string::npos) << name;
    }
    EXPECT_NE(text.find("8M"), std::string::npos) << text;
    EXPECT_NE(text.find("default 64G"), std::string::npos) << text;
    std::string part(20, '\xee');
    EXPECT_EQ(hcamem_options_describe(&options, part.data(), 10), length);
    EXPECT_EQ(part[9], '\0');
    EXPECT_EQ(part[10], '\xee');
    EXPECT_EQ(hcamem_options_describe(nullptr, nullptr, 1), -EINVAL);
}

TEST(Options, each_one_that_makes_no_sense_is_refused_by_name) {
    const auto refused = [](auto change, const char* name) {
        hcamem_options options = test_options();
        change(options);
        hcamem_pool* pool = nullptr;
        EXPECT_EQ(hcamem_pool_create(&options, &pool), -EINVAL) << name;
        EXPECT_EQ(pool, nullptr);
        EXPECT_NE(std::strstr(hcamem_last_message(), name), nullptr) << hcamem_last_message();
    };
    refused([](hcamem_options& o) { o.source = 3; }, "source");
    refused([](hcamem_options& o) { o.mapping = 3; }, "mapping");
    refused([](hcamem_options& o) { o.fork = 3; }, "fork");
    refused([](hcamem_options& o) { o.flags = 1U << 31; }, "flags");
    refused([](hcamem_options& o) { o.numa_node = -2; }, "numa_node");
    refused([](hcamem_options& o) { o.maximum = UINT64_MAX; }, "maximum");
    refused([](hcamem_options& o) { o.initial = o.maximum + 1; }, "initial");
    refused([](hcamem_options& o) { o.size = 0; }, "size");
    refused([](hcamem_options& o) { o.size = sizeof o - 1; }, "size");
}

TEST(Options, a_newer_caller_may_pass_fields_it_left_at_zero) {
    struct newer {
        hcamem_options known;
        std::uint64_t unknown[2];
    };
    newer options{};
    options.known = test_options();
    options.known.size = sizeof options;
    hcamem_pool* pool = nullptr;
    ASSERT_EQ(hcamem_pool_create(&options.known, &pool), 0) << hcamem_last_message();
    hcamem_pool_close(pool);
    options.unknown[1] = 1;
    EXPECT_EQ(hcamem_pool_create(&options.known, &pool), -E2BIG);
}

TEST(Options, init_fills_what_a_newer_caller_has_with_zeros) {
    std::vector<unsigned char> space(sizeof(hcamem_options) + 16, 0xee);
    auto* options = reinterpret_cast<hcamem_options*>(space.data());
    hcamem_options_init(options, static_cast<std::uint32_t>(sizeof(hcamem_options) + 8));
    EXPECT_EQ(options->size, sizeof(hcamem_options) + 8);
    EXPECT_EQ(space[sizeof(hcamem_options) + 7], 0);
    EXPECT_EQ(space[sizeof(hcamem_options) + 8], 0xee);
}

TEST(Options, initial_memory_is_there_at_once) {
    hcamem_options options = test_options();
    options.initial = 5 * MiB;
    EXPECT_EQ(stats_of(make_pool(options).get()).slab_bytes, 6 * MiB);
}

TEST(Options, fixed_growth_is_kept_to) {
    hcamem_options options = test_options();
    options.growth = 3 * MiB;
    const pool_ptr pool = make_pool(options);
    for (std::size_t slabs = 1; slabs < 4; ++slabs) {
        ASSERT_NE(hcamem_alloc(pool.get(), 4 * MiB, 0, 0), nullptr);
        EXPECT_EQ(stats_of(pool.get()).slab_bytes, slabs * 4 * MiB);
    }
}

} // namespace
