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
    const Json answer = outcome.json();
    EXPECT_TRUE(answer.at("regions").is_null()) << "not known is not none";
    EXPECT_TRUE(answer.at("users").is_null());
    EXPECT_TRUE(answer.at("creators").is_null());
    ASSERT_EQ(answer.at("processes").size(), 1U) << outcome.out;
    const Json process = answer.at("processes").at(0);
    EXPECT_EQ(process.at("pid"), child.pid());
    EXPECT_EQ(process.at("user"), "nobody");
    EXPECT_TRUE(process.at("uses").at(0).at("node").is_null()) << "the dma-buf";
    EXPECT_EQ(process.at("uses").at(1).at("node"), *Node::name_of("rxe0"));
    EXPECT_EQ(process.at("uses").at(1).at("mapped_bytes"), 3 * page_size);
    EXPECT_EQ(answer.at("missing").size(), 2U);
    EXPECT_NE(outcome.err.find("not shown: the regions"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("not shown: the processes of other users"), std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find("run hcamemctl as root"), std::string::npos) << outcome.err;
}

TEST(CtlPrivilege, a_mapping_of_a_gone_hca_is_seen_without_privilege_too) {
    Hca hca("rxe0");
    const std::string name = *Node::name_of("rxe0");
    const Child child = holder_of_nobody();
    hca.remove();
    const Json answer = hcamemctl({"show", "--json"}, {nobody, {}}).json();
    ASSERT_EQ(answer.at("processes").size(), 1U);
    EXPECT_EQ(answer.at("processes").at(0).at("uses").at(1).at("node"), name);
}

TEST(CtlPrivilege, tables_for_an_ordinary_user) {
    const Child child = holder_of_nobody();
    const Outcome outcome = hcamemctl({"show"}, {nobody, {}});
    EXPECT_EQ(outcome.status, 4);
    EXPECT_NE(outcome.out.find("12K"), std::string::npos) << outcome.out;
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
    const Json answer = outcome.json();
    ASSERT_EQ(answer.at("missing").size(), 1U);
    EXPECT_NE(outcome.err.find("mount -t debugfs"), std::string::npos) << outcome.err;
    EXPECT_TRUE(answer.at("regions").is_null());
    EXPECT_EQ(answer.at("processes").at(0).at("pid"), getpid());
}

TEST(CtlPrivilege, in_another_pid_namespace_nothing_is_said_about_creators) {
    const Node node("rxe0");
    const Region region(node, page_size);
    const Outcome outcome =
        run({"unshare", "--pid", "--fork", "--mount-proc", tool_path(), "show", "--json"});
    const Json answer = outcome.json();
    ASSERT_GT(answer.at("regions").size(), 0U);
    EXPECT_EQ(answer.at("regions").at(0).at("creator"), "unknown");
}
