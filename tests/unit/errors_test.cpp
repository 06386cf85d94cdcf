// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Errors name the limit, its value and the remedy.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

#include "pressure/memory_cgroup.h"
#include "support/child.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

std::string message() {
    return hcamem_last_message();
}

bool has_module() {
    return std::filesystem::exists("/sys/class/hcamem");
}

TEST(Errors, strerror_explains_both_signs_and_never_fails) {
    for (int error = -140; error <= 140; ++error) {
        ASSERT_NE(hcamem_strerror(error), nullptr);
        EXPECT_STREQ(hcamem_strerror(error), hcamem_strerror(-error));
        EXPECT_STRNE(hcamem_strerror(error), "");
    }
    EXPECT_NE(std::strstr(hcamem_strerror(-EAGAIN), "RLIMIT_MEMLOCK"), nullptr);
    EXPECT_NE(std::strstr(hcamem_strerror(EDQUOT), "max_bytes"), nullptr);
    EXPECT_NE(std::strstr(hcamem_strerror(ESTALE), "fork"), nullptr);
    EXPECT_STRNE(hcamem_strerror(1 << 30), "");
}

TEST(Errors, each_thread_has_its_own_last_message) {
    const pool_ptr pool = make_pool();
    ASSERT_EQ(hcamem_alloc(pool.get(), 1, 3, 0), nullptr);
    const std::string mine = message();
    std::thread([&] {
        EXPECT_EQ(message(), "");
        EXPECT_EQ(hcamem_alloc(pool.get(), 1, 5, 0), nullptr);
        EXPECT_NE(message(), mine);
    }).join();
    EXPECT_EQ(message(), mine);
}

TEST(Errors, success_leaves_errno_alone) {
    const pool_ptr pool = make_pool();
    errno = 77;
    void* block = hcamem_alloc(pool.get(), 3 * MiB, 0, 0);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(hcamem_free(pool.get(), block), 0);
    EXPECT_EQ(errno, 77);
}

TEST(Errors, an_unknown_hca_is_named_and_so_are_those_there_are) {
    hcamem_options options = test_options();
    options.source = HCAMEM_DEVICE;
    options.hca = "no_such_hca";
    hcamem_pool* pool = nullptr;
    EXPECT_EQ(hcamem_pool_create(&options, &pool), -ENODEV);
    const char* expected = has_module() ? "no_such_hca" : "modprobe hcamem";
    EXPECT_NE(message().find(expected), std::string::npos) << message();
}

TEST(Errors, auto_falls_back_to_ordinary_memory_with_one_warning) {
    EXPECT_EQ(run_in_child(birth::fork,
                           [] {
                               hcamem_options options = test_options();
                               options.source = HCAMEM_AUTO;
                               options.hca = "no_such_hca";
                               testing::internal::CaptureStderr();
                               const pool_ptr one = make_pool(options);
                               const pool_ptr two = make_pool(options);
                               const std::string said = testing::internal::GetCapturedStderr();
                               const std::size_t at = said.find("ordinary memory");
                               if (at == std::string::npos ||
                                   said.find("ordinary memory", at + 1) != std::string::npos) {
                                   return 1;
                               }
                               return hcamem_source(one.get()) == HCAMEM_MEMORY &&
                                              hcamem_alloc(two.get(), 64, 0, 0) != nullptr
                                          ? 0
                                          : 2;
                           }),
              0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they reserve more themselves
TEST(Errors, too_little_address_space_is_told_with_the_remedy) {
    EXPECT_EQ(run_in_child(birth::fork,
                           [] {
                               const rlimit limit{512 * MiB, 512 * MiB};
                               setrlimit(RLIMIT_AS, &limit);
                               hcamem_options options = test_options();
                               options.maximum = 64 * GiB;
                               hcamem_pool* pool = nullptr;
                               if (hcamem_pool_create(&options, &pool) != -ENOMEM) {
                                   return 1;
                               }
                               return message().find("HCAMEM_MAXIMUM") != std::string::npos ? 0 : 2;
                           }),
              0);
}

#endif

TEST(Errors, the_locked_memory_limit_is_named_with_value_and_remedy) {
    EXPECT_EQ(run_in_child(birth::fork,
                           [] {
                               const rlimit limit{64 * KiB, 64 * KiB};
                               constexpr unsigned nobody = 65534;
                               if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
                                   (geteuid() == 0 && setresuid(nobody, nobody, nobody) != 0)) {
                                   return 1;
                               }
                               hcamem_options options = test_options();
                               options.initial = 2 * MiB;
                               hcamem_pool* pool = nullptr;
                               const int result = hcamem_pool_create(&options, &pool);
                               if (test_source() == HCAMEM_MEMORY) {
                                   return result == 0 ? 0 : 2; // nothing is pinned yet
                               }
                               if (result != -EAGAIN) {
                                   return 3;
                               }
                               for (const char* part : {"RLIMIT_MEMLOCK", "64 KiB", "2 MiB",
                                                        "ulimit -l", "CAP_IPC_LOCK"}) {
                                   if (message().find(part) == std::string::npos) {
                                       return 4;
                                   }
                               }
                               return 0;
                           }),
              0);
}

TEST(Errors, event_fd_says_that_the_source_reports_no_pressure) {
    hcamem_options options = test_options();
    options.source = HCAMEM_MEMORY;
    const pool_ptr pool = make_pool(options);
    if (!hcamem::core::memory_cgroup::of_this_process().empty()) {
        GTEST_SKIP() << "a memory cgroup tells of pressure for ordinary memory too";
    }
    EXPECT_EQ(hcamem_event_fd(pool.get()), -EOPNOTSUPP);
    EXPECT_NE(message().find("pressure"), std::string::npos);
}

TEST(Errors, stats_of_a_shorter_structure_are_refused) {
    const pool_ptr pool = make_pool();
    hcamem_stats stats{};
    stats.size = 8;
    EXPECT_EQ(hcamem_get_stats(pool.get(), &stats), -EINVAL);
    EXPECT_EQ(hcamem_get_stats(pool.get(), nullptr), -EINVAL);
}

TEST(Export, ranges_that_are_not_in_one_slab_are_refused) {
    const pool_ptr pool = make_pool();
    auto* block = static_cast<char*>(hcamem_alloc(pool.get(), 2 * MiB, 0, 0));
    std::uint64_t offset = 0;
    const int on_stack = 0;
    EXPECT_EQ(hcamem_export(pool.get(), block, 0, &offset), -EINVAL);
    EXPECT_EQ(hcamem_export(pool.get(), &on_stack, 4, &offset), -EINVAL);
    EXPECT_EQ(hcamem_export(pool.get(), block, 3 * MiB, &offset), -EINVAL);
    EXPECT_EQ(hcamem_export(pool.get(), block, SIZE_MAX, &offset), -EINVAL);
    EXPECT_EQ(hcamem_export(pool.get(), block + 2 * MiB - 1, 2, &offset), -EINVAL);
}

TEST(Export, ordinary_memory_says_that_it_needs_the_device) {
    hcamem_options options = test_options();
    options.source = HCAMEM_MEMORY;
    const pool_ptr pool = make_pool(options);
    void* block = hcamem_alloc(pool.get(), 64, 0, 0);
    std::uint64_t offset = 0;
    EXPECT_EQ(hcamem_export(pool.get(), block, 64, &offset), -EOPNOTSUPP);
    EXPECT_NE(message().find("device"), std::string::npos);
}

} // namespace
