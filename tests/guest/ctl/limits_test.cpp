// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl limits: showing and setting them.
#include <gtest/gtest.h>

#include <deque>

#include "support/guest.hpp"
#include "support/node.hpp"
#include "tool.hpp"

using namespace support;

namespace {

constexpr const char* names[] = {"max_bytes", "max_bytes_per_user", "reserve_bytes", "low_bytes",
                                 "critical_bytes"};

std::uint64_t current(const std::string& name) {
    return read_number("/sys/module/hcamem/parameters/" + name);
}

std::vector<std::uint64_t> all_current() {
    std::vector<std::uint64_t> values;
    for (const char* name : names) {
        values.push_back(current(name));
    }
    return values;
}

/// Leaves the limits as it found them.
class CtlLimits : public testing::Test {
  protected:
    CtlLimits() {
        for (const char* name : names) {
            saved_.emplace_back(name, current(name));
        }
    }

    static Outcome limits(std::vector<std::string> arguments,
                          const Circumstances& circumstances = {}) {
        arguments.insert(arguments.begin(), "limits");
        return hcamemctl(arguments, circumstances);
    }

  private:
    std::deque<ModuleParameter> saved_;
};

} // namespace

TEST_F(CtlLimits, shows_what_the_module_has) {
    const Outcome outcome = limits({"--json"}, {nobody, {}});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const JsonValue answer = outcome.json();
    for (const char* name : names) {
        EXPECT_EQ(static_cast<std::uint64_t>(answer["limits"][name].number()), current(name));
        EXPECT_NE(limits({}).out.find(std::to_string(current(name))), std::string::npos);
    }
    EXPECT_EQ(static_cast<std::uint64_t>(answer["memory_bytes"].number()), meminfo("MemTotal"));
}

TEST_F(CtlLimits, root_sets_several_at_once) {
    const Outcome outcome = limits({"max_bytes=100M", "max_bytes_per_user=1.5M", "low_bytes=1GiB",
                                    "critical_bytes=0", "reserve_bytes=12345", "--json"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(current("max_bytes"), 100 * MiB);
    EXPECT_EQ(current("max_bytes_per_user"), 1536 * KiB);
    EXPECT_EQ(current("low_bytes"), GiB);
    EXPECT_EQ(current("critical_bytes"), 0U);
    EXPECT_EQ(current("reserve_bytes"), 12345U);
    EXPECT_EQ(outcome.json()["limits"]["max_bytes"].number(), 100 * MiB);
}

TEST_F(CtlLimits, a_share_is_one_of_the_memory_in_whole_pages) {
    ASSERT_EQ(limits({"max_bytes=50%", "reserve_bytes=12.5%"}).status, 0);
    EXPECT_EQ(current("max_bytes"), meminfo("MemTotal") / 2 / page_size * page_size);
    EXPECT_EQ(current("reserve_bytes"), meminfo("MemTotal") / 8 / page_size * page_size);
}

TEST_F(CtlLimits, the_driver_obeys) {
    const Node node("rxe0");
    ASSERT_EQ(limits({"max_bytes=64K"}).status, 0);
    EXPECT_EQ(Region::attempt(node, 128 * KiB), EDQUOT);
    ASSERT_EQ(limits({"max_bytes=50%"}).status, 0);
    EXPECT_EQ(Region::attempt(node, 128 * KiB), 0);
}

TEST_F(CtlLimits, what_is_wrong_is_named_and_changes_nothing) {
    const auto before = all_current();
    struct Wrong {
        std::vector<std::string> arguments;
        int status;
        const char* message;
    };
    const Wrong wrongs[] = {
        {{"max_bytes="}, 2, "is no size"},
        {{"max_bytes=4GB"}, 2, "is no size"},
        {{"max_bytes=-1"}, 2, "is no size"},
        {{"max_bytes=1.5"}, 2, "is no size"},
        {{"max_bytes=1e9"}, 2, "is no size"},
        {{"max_bytes=99999999999999999999"}, 2, "is no size"},
        {{"max_bytes=17000000T"}, 2, "is no size"},
        {{"max_bytes"}, 2, "not understood"},
        {{"maximum=4G"}, 2, "there is no limit 'maximum'"},
        {{"max_bytes=200T"}, 1, "more than this machine's memory"},
        {{"reserve_bytes=101%"}, 1, "more than this machine's memory"},
        {{"low_bytes=1M", "critical_bytes=2M"}, 1, "critical_bytes would be above low_bytes"},
        // The first is right, and still nothing happens.
        {{"max_bytes=32M", "reserve_bytes=much"}, 2, "reserve_bytes"},
        {{"max_bytes=32M", "low_bytes=0"}, 1, "critical_bytes would be above low_bytes"},
    };
    for (const Wrong& wrong : wrongs) {
        const Outcome outcome = limits(wrong.arguments);
        EXPECT_EQ(outcome.status, wrong.status) << outcome.err;
        EXPECT_EQ(outcome.out, "");
        EXPECT_NE(outcome.err.find(wrong.message), std::string::npos)
            << wrong.arguments.back() << ": " << outcome.err;
        EXPECT_EQ(all_current(), before) << wrong.arguments.back();
    }
}

TEST_F(CtlLimits, force_sets_what_cannot_be_meant) {
    ASSERT_EQ(limits({"--force", "max_bytes=200T", "critical_bytes=2M", "low_bytes=1M"}).status, 0);
    EXPECT_EQ(current("max_bytes"), 200 * 1024 * GiB);
    EXPECT_EQ(current("critical_bytes"), 2 * MiB);
}

TEST_F(CtlLimits, what_surprises_is_said) {
    const Node node("rxe0");
    const Region region(node, MiB);
    const Outcome below_use = limits({"max_bytes=64K"});
    EXPECT_EQ(below_use.status, 0);
    EXPECT_NE(below_use.err.find("1M are handed out, more than max_bytes"), std::string::npos)
        << below_use.err;
    EXPECT_NE(limits({"max_bytes=0"}).err.find("nothing is handed out"), std::string::npos);
    EXPECT_NE(limits({"max_bytes=1M", "max_bytes_per_user=2M"}).err.find("no effect"),
              std::string::npos);
    EXPECT_NE(limits({"reserve_bytes=100%"}).err.find("nothing is handed out now"),
              std::string::npos);
}

TEST_F(CtlLimits, only_root_sets) {
    const auto before = all_current();
    const Outcome outcome = limits({"max_bytes=1M"}, {nobody, {}});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("cannot set max_bytes: only root may change limits"),
              std::string::npos)
        << outcome.err;
    EXPECT_EQ(all_current(), before);
}
