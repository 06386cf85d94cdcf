// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Processes that are not, or are no longer, what they seem.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/dma-buf.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"
#include "tool.hpp"

using namespace support;

namespace {

/// A child that sleeps under the pid it is given.
pid_t sleeper_with_pid(pid_t pid) {
    clone_args args{};
    args.exit_signal = SIGCHLD;
    args.set_tid = reinterpret_cast<std::uintptr_t>(&pid);
    args.set_tid_size = 1;
    const long child = syscall(SYS_clone3, &args, sizeof args);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            pause();
        }
    }
    return static_cast<pid_t>(must(child, "clone3"));
}

/// Gives its name to the process, obtains a region and waits.
Child named_holder(const std::string& name) {
    Child child([name](Channel& channel) {
        must(prctl(PR_SET_NAME, name.c_str()), "PR_SET_NAME");
        const Node node("rxe0");
        const Region region(node, page_size);
        channel.send(0);
        static_cast<void>(channel.receive());
    });
    static_cast<void>(child.channel().receive());
    return child;
}

/// The one entry of an array that is of this process.
Json of_pid(const Json& entries, pid_t pid) {
    Json found;
    for (const Json& entry : entries) {
        if (entry.at("pid") == pid) {
            require(found.is_null(), "the process is there twice");
            found = entry;
        }
    }
    require(!found.is_null(), "the process is not there");
    return found;
}

bool is_plain(const std::string& text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
}

} // namespace

TEST(CtlIdentity, another_process_with_the_pid_of_a_dead_creator_is_not_taken_for_it) {
    UniqueFd dma_buf;
    pid_t pid = -1;
    {
        Child child([](Channel& channel) {
            const Node node("rxe0");
            const Region region(node, page_size);
            channel.send_fd(node.export_range(region.data(), page_size).get());
        });
        pid = child.pid();
        dma_buf = child.channel().receive_fd();
        child.wait();
    }
    // The start of a process is known to the clock tick: let the next one begin.
    usleep(1'000'000U / static_cast<useconds_t>(sysconf(_SC_CLK_TCK)));
    // Of the same name and user, with the node open, under the same pid.
    const Node node("rxe0");
    ASSERT_EQ(sleeper_with_pid(pid), pid);
    const Json answer = show({"--pid", std::to_string(pid)});
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    ASSERT_EQ(answer.at("regions").size(), 1U);
    EXPECT_EQ(answer.at("regions").at(0).at("creator"), "dead");
    EXPECT_EQ(answer.at("processes").size(), 1U);
}

TEST(CtlIdentity, a_zombie_is_dead) {
    UniqueFd dma_buf;
    Child child([](Channel& channel) {
        const Node node("rxe0");
        const Region region(node, page_size);
        channel.send_fd(node.export_range(region.data(), page_size).get());
    });
    dma_buf = child.channel().receive_fd();
    siginfo_t info{};
    must(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), "waitid");
    EXPECT_EQ(regions_of(child.pid()).at(0).at("creator"), "dead");
}

TEST(CtlIdentity, a_creator_stays_itself_through_exec) {
    Child child([](Channel& channel) {
        const Node node("rxe0");
        const Region region(node, page_size);
        const UniqueFd dma_buf = node.export_range(region.data(), page_size);
        must(fcntl(dma_buf.get(), F_SETFD, 0), "F_SETFD");
        channel.send(0);
        execlp("sleep", "sleep", "1000", nullptr);
    });
    static_cast<void>(child.channel().receive());
    ASSERT_TRUE(eventually(
        [&] { return read_text("/proc/" + std::to_string(child.pid()) + "/comm") == "sleep\n"; }));
    const Json answer = show({"--pid", std::to_string(child.pid())});
    EXPECT_EQ(answer.at("regions").at(0).at("creator"), "alive");
    EXPECT_EQ(answer.at("regions").at(0).at("command"), "ctl_tests");
    EXPECT_EQ(answer.at("processes").at(0).at("command"), "sleep");
}

TEST(CtlIdentity, hostile_names_reach_neither_terminal_nor_parser) {
    struct Name {
        std::string given;
        std::string in_json;
        std::string in_table;
    };
    const Name names[] = {
        {"\x1b[31m\n\r\t\"\\", "\x1b[31m\n\r\t\"\\", "\\x1b[31m\\x0a\\x0d\\x09\"\\\\"},
        {"a chunks=1x1", "a chunks=1x1", "a chunks=1x1"},
        {" bytes=0 ", " bytes=0 ", " bytes=0 "},
        {") R 1 (", ") R 1 (", ") R 1 ("},
        {"\xff\xc3(\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd", "\\xff\\xc3(\\xe2\\x82"},
        {"\xc2\x9b"
         "31m\x7f",
         "\xc2\x9b"
         "31m\x7f",
         "\\xc2\\x9b31m\\x7f"},
        {"gr\xc3\xbc\xc3\x9f"
         "e",
         "gr\xc3\xbc\xc3\x9f"
         "e",
         "gr\\xc3\\xbc\\xc3\\x9fe"},
        {"", "", "-"},
    };
    std::vector<Child> holders;
    for (const Name& name : names) {
        holders.push_back(named_holder(name.given));
    }
    const std::string json = hcamemctl({"show", "--json"}).out;
    const std::string text = hcamemctl({"show"}).out;
    EXPECT_TRUE(is_plain(text)) << text;
    const Json answer = Json::parse(json);
    for (std::size_t i = 0; i < holders.size(); ++i) {
        const pid_t pid = holders[i].pid();
        const Json region = of_pid(answer.at("regions"), pid);
        EXPECT_EQ(region.at("command"), names[i].in_json);
        EXPECT_EQ(region.at("bytes"), page_size);
        EXPECT_EQ(region.at("creator"), "alive");
        EXPECT_EQ(of_pid(answer.at("creators"), pid).at("command"), names[i].in_json);
        EXPECT_EQ(of_pid(answer.at("processes"), pid).at("command"), names[i].in_json);
        EXPECT_NE(text.find("  " + std::to_string(pid) + "  " + names[i].in_table + "  "),
                  std::string::npos)
            << text;
    }
}

TEST(CtlIdentity, the_name_of_a_dma_buf_cannot_pass_for_fdinfo) {
    const Node node("rxe0");
    const Region region(node, 2 * page_size);
    const UniqueFd dma_buf = node.export_range(region.data(), page_size);
    ASSERT_EQ(ioctl(dma_buf.get(), DMA_BUF_SET_NAME_B, "x\nsize:\t77\nhcamem-node:\tno"), 0);
    EXPECT_EQ(use_of(getpid(), "").at("descriptors"), 1);
    EXPECT_EQ(use_of(getpid(), *Node::name_of("rxe0")).at("descriptors"), 1);
}

TEST(CtlIdentity, a_node_under_another_name_is_one) {
    const std::string alias = "/dev/alias";
    struct stat status {};
    must(stat(Node::path_of("rxe1").c_str(), &status), "stat");
    must(mknod(alias.c_str(), S_IFCHR | 0600, status.st_rdev), "mknod");
    const Node node(UniqueFd(must(open(alias.c_str(), O_RDWR | O_CLOEXEC), "open")));
    must(unlink(alias.c_str()), "unlink");
    EXPECT_EQ(use_of(getpid(), *Node::name_of("rxe1")).at("descriptors"), 1);
}

TEST(CtlIdentity, processes_that_vanish_meanwhile_do_no_harm) {
    const Node node("rxe0");
    const std::uint64_t before = node.total();
    // Children that come, map and go as fast as they can, with the node open.
    Child storm([&node](Channel&) {
        for (;;) {
            const pid_t pid = must(fork(), "fork");
            if (pid == 0) {
                const Region region(node, page_size);
                _exit(0);
            }
            must(waitpid(pid, nullptr, 0), "waitpid");
        }
    });
    for (int round = 0; round < 4; ++round) {
        const Outcome json = hcamemctl({"show", "--json"});
        EXPECT_EQ(json.status, 0) << json.err;
        EXPECT_NO_THROW(static_cast<void>(json.json()));
        const Outcome text = hcamemctl({"show"});
        EXPECT_EQ(text.status, 0) << text.err;
        EXPECT_EQ(text.err, "");
    }
    storm.kill_now();
    storm.wait();
    EXPECT_TRUE(eventually([&] { return node.total() == before; })) << "a last grandchild";
}
