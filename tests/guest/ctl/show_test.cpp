// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl show: regions, sums and processes, against regions whose make is known.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "foreign_reference.hpp"
#include "guest/importer/importer.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/hca.hpp"
#include "support/node.hpp"
#include "tool.hpp"

using namespace support;

namespace {

/// Regions that this process obtained since; what earlier tests left is not theirs.
class CtlShow : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(eventually([] { return regions_of(getpid()).size() == 0; }));
    }

    static JsonValue only_region() {
        const JsonValue regions = regions_of(getpid());
        EXPECT_EQ(regions.size(), 1U);
        return regions[0];
    }
};

std::uint64_t bytes_in_chunks(const JsonValue& region) {
    std::uint64_t bytes = 0;
    for (const JsonValue& some : region["chunks"].array()) {
        bytes += static_cast<std::uint64_t>(some["bytes"].number() * some["count"].number());
    }
    return bytes;
}

std::uint64_t inode_of(const UniqueFd& fd) {
    struct stat status {};
    must(fstat(fd.get(), &status), "fstat");
    return status.st_ino;
}

void wait_for_end(Channel& channel) {
    channel.send(0);
    static_cast<void>(channel.receive());
}

} // namespace

TEST_F(CtlShow, a_mapped_region_with_all_that_is_known_of_it) {
    const Node node("rxe1");
    const Region region(node, 5 * MiB, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_SHARE});
    const JsonValue shown = only_region();
    EXPECT_GT(shown["region"].number(), 0);
    EXPECT_EQ(shown["node"].string(), *Node::name_of("rxe1"));
    EXPECT_EQ(shown["hca"].string(), "rxe1");
    EXPECT_EQ(shown["uid"].number(), 0);
    EXPECT_EQ(shown["user"].string(), "root");
    EXPECT_EQ(shown["pid"].number(), getpid());
    EXPECT_EQ(shown["command"].string() + '\n', read_text("/proc/self/comm"));
    EXPECT_EQ(shown["creator"].string(), "alive");
    EXPECT_FALSE(shown["pid_reused"].truth());
    EXPECT_GE(shown["age_seconds"].number(), 0);
    EXPECT_EQ(shown["bytes"].number(), 5 * MiB);
    EXPECT_EQ(shown["charged_bytes"].number(), 5 * MiB);
    EXPECT_EQ(shown["state"].string(), "mapped");
    EXPECT_EQ(shown["mapping"].string(), "huge");
    EXPECT_EQ(shown["fork"].string(), "share");
    EXPECT_EQ(shown["mappings"].number(), 1);
    EXPECT_EQ(shown["dma_bufs"].number(), 0);
    EXPECT_EQ(bytes_in_chunks(shown), 5 * MiB);
}

TEST_F(CtlShow, what_is_created_and_not_mapped) {
    const Node node("rxe0");
    hcamem_create request = create_request(2 * page_size);
    ASSERT_EQ(node.try_create(request), 0);
    const JsonValue shown = only_region();
    EXPECT_EQ(shown["state"].string(), "unmapped");
    EXPECT_EQ(shown["mapping"].string(), "pages");
    EXPECT_EQ(shown["fork"].string(), "zero");
    EXPECT_EQ(shown["mappings"].number(), 0);
    const JsonValue descriptor = holdings_of(getpid())["nodes"][0];
    EXPECT_EQ(descriptor["fd"].number(), node.fd());
    EXPECT_EQ(descriptor["node"].string(), *Node::name_of("rxe0"));
    EXPECT_FALSE(descriptor["gone"].truth());
    EXPECT_EQ(descriptor["unmapped_regions"].number(), 1);
    EXPECT_EQ(descriptor["unmapped_bytes"].number(), 2 * page_size);
}

TEST_F(CtlShow, what_only_a_dma_buf_keeps) {
    const Node node("rxe0");
    UniqueFd dma_buf;
    {
        const Region region(node, MiB);
        dma_buf = node.export_range(region.data() + page_size, 2 * page_size);
        EXPECT_EQ(only_region()["state"].string(), "mapped");
        EXPECT_EQ(only_region()["dma_bufs"].number(), 1);
    }
    const JsonValue shown = only_region();
    EXPECT_EQ(shown["state"].string(), "exported");
    EXPECT_EQ(shown["mappings"].number(), 0);
    EXPECT_EQ(shown["dma_bufs"].number(), 1);
    EXPECT_EQ(shown["charged_bytes"].number(), MiB) << "a dma-buf keeps the whole region";

    const JsonValue process = holdings_of(getpid());
    ASSERT_EQ(process["dma_bufs"].size(), 1U);
    EXPECT_EQ(process["dma_bufs"][0]["fd"].number(), dma_buf.get());
    EXPECT_EQ(static_cast<std::uint64_t>(process["dma_bufs"][0]["inode"].number()),
              inode_of(dma_buf));
    EXPECT_EQ(process["dma_bufs"][0]["bytes"].number(), 2 * page_size);
    EXPECT_EQ(show()["dma_bufs"]["total"].number(), 1);
    EXPECT_EQ(show()["dma_bufs"]["with_descriptor"].number(), 1);
}

TEST_F(CtlShow, what_only_the_kernel_keeps) {
    const Importer importer;
    Attachment attachment;
    const Node node("rxe0");
    {
        const Region region(node, MiB);
        const UniqueFd dma_buf = node.export_range(region.data(), page_size);
        ASSERT_EQ(attachment.attach(dma_buf.get(), IMPORTER_STATIC), 0);
    }
    EXPECT_EQ(only_region()["state"].string(), "exported");
    const JsonValue answer = show();
    EXPECT_EQ(answer["dma_bufs"]["total"].number(), 1);
    EXPECT_EQ(answer["dma_bufs"]["with_descriptor"].number(), 0);
    EXPECT_NE(hcamemctl({"show"}).out.find("Dma-bufs: 1, of which 0 in a descriptor"),
              std::string::npos);
    attachment.close();
}

TEST_F(CtlShow, what_only_a_mapped_dma_buf_keeps) {
    const Node node("rxe0");
    Region region(node, MiB);
    UniqueFd dma_buf = node.export_range(region.data(), 3 * page_size);
    void* mapped = mmap(nullptr, 3 * page_size, PROT_READ, MAP_SHARED, dma_buf.get(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    region.unmap();
    dma_buf.reset();
    const JsonValue shown = only_region();
    EXPECT_EQ(shown["state"].string(), "mapped");
    EXPECT_EQ(shown["mappings"].number(), 1);
    const JsonValue process = holdings_of(getpid());
    ASSERT_EQ(process["mapped"].size(), 1U);
    EXPECT_TRUE(process["mapped"][0]["node"].is_null());
    EXPECT_EQ(process["mapped"][0]["bytes"].number(), 3 * page_size);
    munmap(mapped, 3 * page_size);
}

TEST_F(CtlShow, leftovers_while_somebody_references_a_page) {
    const Node node("rxe0");
    {
        const ForeignReference reference;
        {
            const Region region(node, 16 * page_size);
            reference.take(region.data() + 3 * page_size);
        }
        const JsonValue shown = only_region();
        EXPECT_EQ(shown["state"].string(), "leftover");
        EXPECT_EQ(shown["bytes"].number(), 16 * page_size);
        EXPECT_EQ(shown["charged_bytes"].number(), page_size);
        EXPECT_EQ(shown["chunks"].size(), 0U);
        EXPECT_NE(hcamemctl({"show", "--pid", std::to_string(getpid())}).out.find("leftover"),
                  std::string::npos);
    }
    EXPECT_TRUE(eventually([] { return regions_of(getpid()).size() == 0; }));
}

TEST_F(CtlShow, a_creator_that_died_is_shown_as_dead) {
    UniqueFd dma_buf;
    pid_t pid = -1;
    {
        Child child([](Channel& channel) {
            const Node node("rxe0");
            const Region region(node, 4 * page_size);
            channel.send_fd(node.export_range(region.data(), page_size).get());
            static_cast<void>(channel.receive());
        });
        pid = child.pid();
        dma_buf = child.channel().receive_fd();
        EXPECT_EQ(regions_of(pid)[0]["creator"].string(), "alive");
        child.channel().send(0);
        child.wait();
    }
    const JsonValue answer = show({"--pid", std::to_string(pid)});
    ASSERT_EQ(answer["regions"].size(), 1U);
    EXPECT_EQ(answer["regions"][0]["creator"].string(), "dead");
    EXPECT_FALSE(answer["regions"][0]["pid_reused"].truth());
    EXPECT_EQ(answer["regions"][0]["state"].string(), "exported");
    EXPECT_EQ(answer["creators"][0]["creator"].string(), "dead");
    EXPECT_EQ(answer["processes"].size(), 0U);
    EXPECT_EQ(static_cast<std::uint64_t>(holdings_of(getpid())["dma_bufs"][0]["inode"].number()),
              inode_of(dma_buf))
        << "who holds it now";
}

TEST_F(CtlShow, sums_per_user_and_per_process) {
    const uid_t uid = fresh_user();
    const Child::Body body = [](Channel& channel) {
        const Node node("rxe0");
        const Region one(node, 3 * page_size);
        const Region two(node, 5 * page_size);
        wait_for_end(channel);
    };
    Child first({uid, RLIM_INFINITY, {}}, body);
    Child second({uid, RLIM_INFINITY, {}}, body);
    static_cast<void>(first.channel().receive());
    static_cast<void>(second.channel().receive());
    const JsonValue answer = show({"--user", std::to_string(uid)});
    ASSERT_EQ(answer["users"].size(), 1U);
    EXPECT_EQ(answer["users"][0]["uid"].number(), uid);
    EXPECT_TRUE(answer["users"][0]["user"].is_null()) << "nobody in /etc/passwd";
    EXPECT_EQ(answer["users"][0]["regions"].number(), 4);
    EXPECT_EQ(answer["users"][0]["charged_bytes"].number(), 16 * page_size);
    ASSERT_EQ(answer["creators"].size(), 2U);
    for (const JsonValue& creator : answer["creators"].array()) {
        EXPECT_EQ(creator["regions"].number(), 2);
        EXPECT_EQ(creator["bytes"].number(), 8 * page_size);
        EXPECT_EQ(creator["uid"].number(), uid);
        EXPECT_EQ(creator["creator"].string(), "alive");
    }
    ASSERT_EQ(answer["processes"].size(), 2U);
    EXPECT_EQ(answer["processes"][0]["mapped"][0]["bytes"].number(), 8 * page_size);
    EXPECT_EQ(answer["processes"][0]["mapped"][0]["areas"].number(), 2);
    first.channel().send(0);
    second.channel().send(0);
}

TEST_F(CtlShow, children_share_or_were_wiped) {
    const Node node("rxe0");
    const Region shared(node, 3 * page_size, {HCAMEM_MAPPING_PAGES, HCAMEM_FORK_POLICY_SHARE});
    const Region wiped(node, 5 * page_size, {HCAMEM_MAPPING_PAGES, HCAMEM_FORK_POLICY_ZERO});
    Child child(wait_for_end);
    static_cast<void>(child.channel().receive());
    const JsonValue holdings = holdings_of(child.pid());
    ASSERT_EQ(holdings["mapped"].size(), 1U);
    EXPECT_EQ(holdings["mapped"][0]["bytes"].number(), 3 * page_size);
    EXPECT_EQ(holdings["wiped_bytes"].number(), 5 * page_size);
    EXPECT_EQ(holdings["nodes"].size(), 1U) << "the inherited descriptor";
    EXPECT_EQ(regions_of(child.pid()).size(), 0U) << "it obtained nothing";
    child.channel().send(0);
}

TEST_F(CtlShow, narrowed_to_a_node) {
    const Node first("rxe0");
    const Node second("rxe1");
    const Region one(first, page_size);
    const Region two(second, 2 * page_size);
    const std::string name = *Node::name_of("rxe1");
    for (const auto& arguments : {std::vector<std::string>{"--hca", "rxe1"},
                                  {"--node", name},
                                  {"--node=" + name},
                                  {"--node", Node::path_of("rxe1")},
                                  {"--node", name.substr(name.find_first_of("0123456789"))}}) {
        const JsonValue answer = show(arguments);
        ASSERT_EQ(answer["regions"].size(), 1U);
        EXPECT_EQ(answer["regions"][0]["bytes"].number(), 2 * page_size);
        EXPECT_TRUE(answer["dma_bufs"].is_null()) << "a sum of everything would mislead";
    }
}

TEST_F(CtlShow, regions_outlive_their_hca) {
    Hca hca("rxe1");
    const Node node("rxe1");
    const std::string name = *Node::name_of("rxe1");
    const Region region(node, page_size);
    hca.remove();
    const JsonValue answer = show({"--node", name});
    ASSERT_EQ(answer["regions"].size(), 1U);
    EXPECT_TRUE(answer["regions"][0]["hca"].is_null());
    EXPECT_TRUE(answer["processes"][0]["nodes"][0]["gone"].truth());
    EXPECT_EQ(answer["processes"][0]["mapped"][0]["node"].string(), name);
}

TEST_F(CtlShow, tables_for_people) {
    const Node node("rxe0");
    const Region region(node, 3 * MiB, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_DONTCOPY});
    const Outcome outcome = hcamemctl({"show", "--pid", std::to_string(getpid())});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    std::istringstream lines(outcome.out);
    std::string titles;
    std::string row;
    std::getline(lines, titles);
    std::getline(lines, row);
    for (const auto& [title, value] : {std::pair("NODE", Node::name_of("rxe0")->c_str()),
                                       {"HCA", "rxe0"},
                                       {"USER", "root"},
                                       {"COMMAND", "ctl_tests"},
                                       {"CREATOR", "alive"},
                                       {"STATE", "mapped"},
                                       {"MODE", "huge"},
                                       {"FORK", "dontcopy"}}) {
        const auto column = titles.find(title);
        ASSERT_NE(column, std::string::npos) << titles;
        EXPECT_EQ(row.compare(column, std::string(value).size(), value), 0) << title << '\n'
                                                                            << outcome.out;
    }
    EXPECT_NE(outcome.out.find("Obtained, by user\nUSER  REGIONS  SIZE  CHARGED\n"
                               "root        1    3M       3M\n"),
              std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.out.find("3M of " + *Node::name_of("rxe0")), std::string::npos)
        << outcome.out;
}

TEST_F(CtlShow, nothing_is_an_answer_too) {
    const Outcome outcome = hcamemctl({"show", "--user", std::to_string(fresh_user())});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("No such region is handed out."), std::string::npos);
}

TEST_F(CtlShow, what_does_not_exist) {
    for (const auto& arguments : {std::vector<std::string>{"show", "--hca", "rxe9"},
                                  {"show", "--node", "hcamem77"},
                                  {"show", "--user", "no-such-user"},
                                  {"watch", "--hca", "rxe9"},
                                  {"watch", "--node", "hcamem77"}}) {
        const Outcome outcome = hcamemctl(arguments);
        EXPECT_EQ(outcome.status, 3) << outcome.err;
        EXPECT_EQ(outcome.out, "");
        EXPECT_NE(outcome.err.find(arguments[2]), std::string::npos) << outcome.err;
    }
    EXPECT_NE(hcamemctl({"show", "--hca", "rxe9"}).err.find("rxe0"), std::string::npos)
        << "the message says which there are";
}
