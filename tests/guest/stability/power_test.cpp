// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Suspend leaves memory alone; hibernation is refused while memory is handed out.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

/// 0 or the errno of asking for this sleep state, to be ended by the test level "freezer".
int sleep_to(const char* state) {
    write_text("/sys/power/pm_test", "freezer");
    write_text("/sys/module/suspend/parameters/pm_test_delay", "1"); // seconds asleep
    const UniqueFd fd(must(open("/sys/power/state", O_WRONLY | O_CLOEXEC), "/sys/power/state"));
    const int error = write(fd.get(), state, std::strlen(state)) < 0 ? errno : 0;
    write_text("/sys/power/pm_test", "none");
    return error;
}

/// The kernel's log since a mark that this leaves there.
class LogSince {
  public:
    LogSince() { write_text("/dev/kmsg", mark_ + "\n"); }
    [[nodiscard]] std::string text() const {
        must_shell("dmesg > /run/hcamem-dmesg");
        const auto all = read_text("/run/hcamem-dmesg");
        return all.substr(all.rfind(mark_));
    }

  private:
    std::string mark_ =
        "hcamem-test-mark-" + std::to_string(getpid()) + "-" + std::to_string(++count_);
    static inline int count_ = 0;
};

} // namespace

TEST(Power, R19_suspend_leaves_memory_intact) {
    const Node node;
    Region region(node, 8 * MiB, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_ZERO});
    fill(region.bytes(), 9);
    EXPECT_EQ(sleep_to("freeze"), 0);
    EXPECT_TRUE(holds(region.bytes(), 9));
}

TEST(Power, R19_hibernation_is_refused_while_memory_is_out_and_says_why) {
    const Node node;
    Region region(node, 8 * MiB);
    fill(region.bytes(), 9);
    const LogSince log;
    EXPECT_EQ(sleep_to("disk"), EBUSY);
    EXPECT_NE(log.text().find("hcamem: hibernation refused: " + std::to_string(8 * MiB) +
                              " bytes of DMA memory are handed out"),
              std::string::npos)
        << log.text();
    EXPECT_TRUE(holds(region.bytes(), 9));
    // The refusal leaves nothing behind: more memory can be had.
    EXPECT_EQ(Region::attempt(node, MiB), 0);
}

TEST(Power, R19_hibernation_goes_on_without_memory_out_or_when_the_administrator_allows_it) {
    const Node node;
    ASSERT_TRUE(eventually([&] { return node.total() == 0; }));
    EXPECT_EQ(sleep_to("disk"), 0);
    EXPECT_EQ(Region::attempt(node, MiB), 0) << "memory can be had after it";

    const Region region(node, MiB);
    write_text("/sys/module/hcamem/parameters/allow_hibernation", "Y");
    EXPECT_EQ(sleep_to("disk"), 0);
    write_text("/sys/module/hcamem/parameters/allow_hibernation", "N");
}
