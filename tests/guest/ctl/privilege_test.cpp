// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What hcamemctl says when it may not see, or cannot see, everything.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/hca.hpp"
#include "support/node.hpp"
#include "tool.hpp"

using namespace support;

namespace {

/// Gives the program mounts of its own, for it to do without some.
void own_mounts() {
    must(unshare(CLONE_NEWNS), "unshare");
    must(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "make mounts private");
}

std::string all_reasons(const JsonValue& answer) {
    std::string text;
    for (const JsonValue& part : answer["missing"].array()) {
        text += part["what"].string() + ": " + part["reason"].string() + "; " +
                part["remedy"].string() + '\n';
    }
    return text;
}

/// Holds 3 pages as nobody until it is told to end.
Child holder_of_nobody() {
    Child child(nobody, [](Channel& channel) {
        const Node node("rxe0");
        const Region region(node, 3 * page_size);
        const UniqueFd dma_buf = node.export_range(region.data(), page_size);
        channel.send(0);
        static_cast<void>(channel.receive());
    });
    static_cast<void>(child.channel().receive());
    return child;
}

} // namespace

TEST(CtlPrivilege, an_ordinary_user_sees_his_own_and_is_told_what_is_missing) {
    const Node node("rxe0");
    const Region others(node, 5 * page_size);
    const Child child = holder_of_nobody();
    const Outcome outcome = hcamemctl({"show", "--json"}, {nobody, {}});
    EXPECT_EQ(outcome.status, 4);
    const JsonValue answer = outcome.json();
    EXPECT_FALSE(answer["complete"].truth());
    EXPECT_TRUE(answer["regions"].is_null()) << "not known is not none";
    EXPECT_TRUE(answer["users"].is_null());
    EXPECT_TRUE(answer["creators"].is_null());
    EXPECT_EQ(answer["usage"]["total_bytes"].number(), 8 * page_size);
    EXPECT_EQ(answer["usage"]["user_bytes"].number(), 3 * page_size);
    ASSERT_EQ(answer["processes"].size(), 1U) << outcome.out;
    const JsonValue& process = answer["processes"][0];
    EXPECT_EQ(process["pid"].number(), child.pid());
    EXPECT_EQ(process["user"].string(), "nobody");
    EXPECT_EQ(process["mapped"][0]["node"].string(), *Node::name_of("rxe0"));
    EXPECT_EQ(process["mapped"][0]["bytes"].number(), 3 * page_size);
    EXPECT_EQ(process["dma_bufs"][0]["bytes"].number(), page_size);
    EXPECT_EQ(answer["missing"].size(), 2U);
    EXPECT_NE(all_reasons(answer).find("only root may read /sys/kernel/debug/hcamem/regions"),
              std::string::npos)
        << all_reasons(answer);
    EXPECT_NE(outcome.err.find("not shown: regions"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("run hcamemctl as root"), std::string::npos) << outcome.err;
}

TEST(CtlPrivilege, a_mapping_of_a_gone_hca_is_seen_without_privilege_too) {
    Hca hca("rxe0");
    const std::string name = *Node::name_of("rxe0");
    const Child child = holder_of_nobody();
    hca.remove();
    const JsonValue answer = hcamemctl({"show", "--json"}, {nobody, {}}).json();
    ASSERT_EQ(answer["processes"].size(), 1U);
    EXPECT_EQ(answer["processes"][0]["mapped"][0]["node"].string(), name);
}

TEST(CtlPrivilege, tables_for_an_ordinary_user) {
    const Child child = holder_of_nobody();
    const Outcome outcome = hcamemctl({"show"}, {nobody, {}});
    EXPECT_EQ(outcome.status, 4);
    EXPECT_NE(outcome.out.find("12K of that to nobody"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("12K of " + *Node::name_of("rxe0")), std::string::npos)
        << outcome.out;
    EXPECT_EQ(outcome.out.find("REGION"), std::string::npos) << outcome.out;
}

TEST(CtlPrivilege, without_debugfs_root_is_told_how_to_mount_it) {
    const Node node("rxe0");
    const Region region(node, page_size);
    const Outcome outcome =
        hcamemctl({"show", "--json"}, {{}, [] {
                                           own_mounts();
                                           must(umount2("/sys/kernel/debug", MNT_DETACH), "umount");
                                       }});
    EXPECT_EQ(outcome.status, 4);
    const JsonValue answer = outcome.json();
    ASSERT_EQ(answer["missing"].size(), 1U);
    EXPECT_EQ(answer["missing"][0]["reason"].string(), "debugfs is not mounted");
    EXPECT_NE(answer["missing"][0]["remedy"].string().find("mount -t debugfs"), std::string::npos);
    EXPECT_TRUE(answer["regions"].is_null());
    EXPECT_EQ(answer["processes"][0]["pid"].number(), getpid());
}

TEST(CtlPrivilege, debugfs_is_found_wherever_it_is_mounted) {
    const Node node("rxe0");
    const Region region(node, page_size);
    const Outcome outcome =
        hcamemctl({"show", "--json"}, {{}, [] {
                                           own_mounts();
                                           must(umount2("/sys/kernel/debug", MNT_DETACH), "umount");
                                           must(mount("none", "/mnt", "debugfs", 0, nullptr),
                                                "mount debugfs");
                                       }});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_GT(outcome.json()["regions"].size(), 0U);
}

TEST(CtlPrivilege, processes_that_proc_hides_are_missed) {
    const Outcome outcome = hcamemctl(
        {"show", "--json"}, {nobody, [] {
                                 own_mounts();
                                 must(mount("proc", "/proc", "proc", 0, "hidepid=2"), "mount proc");
                             }});
    EXPECT_EQ(outcome.status, 4);
    EXPECT_NE(all_reasons(outcome.json()).find("/proc hides them"), std::string::npos)
        << outcome.out;
}

TEST(CtlPrivilege, in_another_pid_namespace_nothing_is_said_about_creators) {
    const Node node("rxe0");
    const Region region(node, page_size);
    const Outcome outcome =
        run({"unshare", "--pid", "--fork", "--mount-proc", tool_path(), "show", "--json"});
    const JsonValue answer = outcome.json();
    ASSERT_GT(answer["regions"].size(), 0U);
    EXPECT_EQ(answer["regions"][0]["creator"].string(), "unknown");
}
