// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Whatever is refused has an errno of its own, and one line in the kernel's log that names the
// limit, its value and what to do.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "support/cgroup.hpp"
#include "support/child.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

struct Refusal {
    const char* name;
    int error;
    std::function<int()> provoke;  ///< gives the errno
    std::vector<std::string> said; ///< in one line: who, how much, limit, value, remedy
};

constexpr std::uint64_t size = 3 * MiB;

int in_child(const Identity& identity, const std::function<int()>& function) {
    return static_cast<int>(value_from_child(identity, [&] { return function(); }));
}

int attempt() {
    return Region::attempt(Node(), size);
}

const std::vector<Refusal>& refusals() {
    static const std::vector<Refusal> all{
        {"memlock",
         EAGAIN,
         [] {
             return in_child({fresh_user(), rlim_t{1 * MiB}, {}}, attempt);
         },
         {"3145728 bytes", "RLIMIT_MEMLOCK", "is 1048576 bytes", "ulimit -l"}},
        {"max_bytes",
         EDQUOT,
         [] {
             const ModuleParameter cap("max_bytes", 2 * MiB);
             return attempt();
         },
         {"3145728 bytes", "max_bytes of the module is 2097152", "administrator can raise it"}},
        {"max_bytes_in_use",
         EDQUOT,
         [] {
             const Region held(Node(), 2 * MiB);
             const ModuleParameter cap("max_bytes", 4 * MiB);
             return attempt();
         },
         {"3145728 bytes", "max_bytes", "4194304 bytes", "2097152 are in use", "administrator"}},
        {"max_bytes_per_user",
         EDQUOT,
         [] {
             const ModuleParameter cap("max_bytes_per_user", 2 * MiB);
             return in_child({fresh_user(), RLIM_INFINITY, {}}, attempt);
         },
         {"3145728 bytes", "max_bytes_per_user", "2097152 bytes", "administrator"}},
        {"reserve",
         ENOMEM,
         [] {
             const ModuleParameter reserve("reserve_bytes", meminfo("MemTotal"));
             return attempt();
         },
         {"3145728 bytes", "reserve_bytes of the module keeps", "free memory"}},
        {"cgroup",
         ENOMEM,
         [] {
             const MemoryCgroup group(32 * MiB);
             return in_child({}, [&] {
                 const Node node;
                 group.enter();
                 return Region::attempt(node, 48 * MiB);
             });
         },
         {"memory cgroup", "50331648 bytes", "memory.max"}},
        {"bare_mmap",
         EFBIG,
         [] {
             const Node node;
             void* mapped =
                 mmap(nullptr, 65 * MiB, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(), 0);
             return mapped == MAP_FAILED ? errno : 0;
         },
         {"at most 67108864 bytes", "HCAMEM_IOC_CREATE"}},
    };
    return all;
}

class Refused : public testing::TestWithParam<Refusal> {};

/// The first line of the log since the mark that has all of these.
std::string line_with(const std::string& mark, const std::vector<std::string>& parts) {
    const std::string file = "/dev/shm/hcamem-log";
    must_shell("dmesg > " + file);
    std::istringstream log(read_text(file));
    bool since = false;
    for (std::string line; std::getline(log, line);) {
        since = since || line.find(mark) != std::string::npos;
        bool all = since && line.find("hcamem") != std::string::npos;
        for (const auto& part : parts) {
            all = all && line.find(part) != std::string::npos;
        }
        if (all) {
            return line;
        }
    }
    return {};
}

} // namespace

// The lines are rate-limited, so that one refusal among many may leave none.
TEST_P(Refused, R17_has_its_errno_and_a_line_with_limit_value_and_remedy) {
    const auto before = Node().total();
    const std::string mark = std::string("hcamem-test: refusal ") + GetParam().name;
    write_text("/dev/kmsg", mark);
    EXPECT_TRUE(eventually([&] {
        EXPECT_EQ(GetParam().provoke(), GetParam().error);
        return !line_with(mark, GetParam().said).empty();
    }));
    EXPECT_EQ(Node().total(), before) << "nothing half done";
}

INSTANTIATE_TEST_SUITE_P(Causes, Refused, testing::ValuesIn(refusals()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Refusals, R17_each_limit_has_an_errno_of_its_own_or_a_line_that_tells_them_apart) {
    for (const Refusal& one : refusals()) {
        for (const Refusal& other : refusals()) {
            if (&one != &other && one.error == other.error) {
                EXPECT_NE(one.said, other.said) << one.name << ", " << other.name;
            }
        }
    }
}
