// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl show: regions, sums and processes, against regions whose make is known.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "guest/importer/importer.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/hca.hpp"
#include "support/node.hpp"
#include "tool.hpp"

using namespace support;

namespace {

const std::string dma_bufs; // instead of a node's name

/// Regions that this process obtained since; what earlier tests left is not theirs.
class CtlShow : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(eventually([] { return regions_of(getpid()).size() == 0; }));
    }

    static Json only_region() {
        const Json regions = regions_of(getpid());
        EXPECT_EQ(regions.size(), 1U);
        return regions.at(0);
    }
};

std::uint64_t bytes_in_chunks(const Json& region) {
    std::uint64_t bytes = 0;
    for (const Json& some : region.at("chunks")) {
        bytes += some.at("bytes").get<std::uint64_t>() * some.at("count").get<std::uint64_t>();
    }
    return bytes;
}

/// A pipe that references the page of a byte, as long as its reading end is open.
UniqueFd reference_from_a_pipe(void* byte) {
    int ends[2];
    must(pipe2(ends, O_CLOEXEC), "pipe");
    const UniqueFd in(ends[1]);
    const iovec part{byte, 1};
    must(vmsplice(in.get(), &part, 1, 0), "vmsplice");
    return UniqueFd(ends[0]);
}

void wait_for_end(Channel& channel) {
    channel.send(0);
    static_cast<void>(channel.receive());
}

} // namespace

TEST_F(CtlShow, a_mapped_region_with_all_that_is_known_of_it) {
    const Node node("rxe1");
    const Region region(node, 5 * MiB, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_SHARE});
    const Json shown = only_region();
    EXPECT_GT(shown.at("region"), 0);
    EXPECT_EQ(shown.at("node"), *Node::name_of("rxe1"));
    EXPECT_EQ(shown.at("hca"), "rxe1");
    EXPECT_EQ(shown.at("uid"), 0);
    EXPECT_EQ(shown.at("user"), "root");
    EXPECT_EQ(shown.at("pid"), getpid());
    EXPECT_EQ(shown.at("command"), "ctl_tests");
    EXPECT_EQ(shown.at("creator"), "alive");
    EXPECT_GE(shown.at("age_seconds"), 0);
    EXPECT_EQ(shown.at("bytes"), 5 * MiB);
    EXPECT_EQ(shown.at("charged_bytes"), 5 * MiB);
    EXPECT_EQ(shown.at("state"), "mapped");
    EXPECT_EQ(shown.at("mapping"), "huge");
    EXPECT_EQ(shown.at("fork"), "share");
    EXPECT_EQ(shown.at("mappings"), 1);
    EXPECT_EQ(shown.at("dma_bufs"), 0);
    EXPECT_EQ(bytes_in_chunks(shown), 5 * MiB);
}

TEST_F(CtlShow, what_is_created_and_not_mapped) {
    const Node node("rxe0");
    hcamem_create request = create_request(2 * page_size);
    ASSERT_EQ(node.try_create(request), 0);
    const Json shown = only_region();
    EXPECT_EQ(shown.at("state"), "unmapped");
    EXPECT_EQ(shown.at("mapping"), "pages");
    EXPECT_EQ(shown.at("fork"), "zero");
    EXPECT_EQ(shown.at("mappings"), 0);
    const Json use = use_of(getpid(), *Node::name_of("rxe0"));
    EXPECT_EQ(use.at("descriptors"), 1);
    EXPECT_EQ(use.at("mapped_bytes"), 0);
}

TEST_F(CtlShow, what_only_a_dma_buf_keeps) {
    const Node node("rxe0");
    UniqueFd dma_buf;
    {
        const Region region(node, MiB);
        dma_buf = node.export_range(region.data() + page_size, 2 * page_size);
        EXPECT_EQ(only_region().at("state"), "mapped");
        EXPECT_EQ(only_region().at("dma_bufs"), 1);
    }
    const Json shown = only_region();
    EXPECT_EQ(shown.at("state"), "exported");
    EXPECT_EQ(shown.at("mappings"), 0);
    EXPECT_EQ(shown.at("dma_bufs"), 1);
    EXPECT_EQ(shown.at("charged_bytes"), MiB) << "a dma-buf keeps the whole region";
    EXPECT_EQ(use_of(getpid(), dma_bufs).at("descriptors"), 1);
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
    EXPECT_EQ(only_region().at("state"), "exported");
    EXPECT_EQ(only_region().at("dma_bufs"), 1);
    EXPECT_THROW(use_of(getpid(), dma_bufs), std::runtime_error);
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
    const Json shown = only_region();
    EXPECT_EQ(shown.at("state"), "mapped");
    EXPECT_EQ(shown.at("mappings"), 1);
    const Json use = use_of(getpid(), dma_bufs);
    EXPECT_EQ(use.at("descriptors"), 0);
    EXPECT_EQ(use.at("mapped_bytes"), 3 * page_size);
    munmap(mapped, 3 * page_size);
}

TEST_F(CtlShow, leftovers_while_somebody_references_a_page) {
    const Node node("rxe0");
    {
        UniqueFd reference;
        {
            const Region region(node, 16 * page_size);
            reference = reference_from_a_pipe(region.data() + 3 * page_size);
        }
        const Json shown = only_region();
        EXPECT_EQ(shown.at("state"), "leftover");
        EXPECT_EQ(shown.at("bytes"), 16 * page_size);
        EXPECT_EQ(shown.at("charged_bytes"), page_size);
        EXPECT_EQ(shown.at("chunks").size(), 0U);
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
        EXPECT_EQ(regions_of(pid).at(0).at("creator"), "alive");
        child.channel().send(0);
        child.wait();
    }
    const Json answer = show({"--pid", std::to_string(pid)});
    ASSERT_EQ(answer.at("regions").size(), 1U);
    EXPECT_EQ(answer.at("regions").at(0).at("creator"), "dead");
    EXPECT_EQ(answer.at("regions").at(0).at("state"), "exported");
    EXPECT_EQ(answer.at("creators").at(0).at("creator"), "dead");
    EXPECT_EQ(answer.at("processes").size(), 0U);
    EXPECT_EQ(use_of(getpid(), dma_bufs).at("descriptors"), 1) << "who holds it now";
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
    const Json answer = show({"--user", std::to_string(uid)});
    ASSERT_EQ(answer.at("users").size(), 1U);
    EXPECT_EQ(answer.at("users").at(0).at("uid"), uid);
    EXPECT_EQ(answer.at("users").at(0).at("user"), std::to_string(uid)) << "it has no name";
    EXPECT_EQ(answer.at("users").at(0).at("regions"), 4);
    EXPECT_EQ(answer.at("users").at(0).at("charged_bytes"), 16 * page_size);
    ASSERT_EQ(answer.at("creators").size(), 2U);
    for (const Json& creator : answer.at("creators")) {
        EXPECT_EQ(creator.at("regions"), 2);
        EXPECT_EQ(creator.at("bytes"), 8 * page_size);
        EXPECT_EQ(creator.at("uid"), uid);
        EXPECT_EQ(creator.at("creator"), "alive");
    }
    ASSERT_EQ(answer.at("processes").size(), 2U);
    EXPECT_EQ(answer.at("processes").at(0).at("uses").at(0).at("mapped_bytes"), 8 * page_size);
    first.channel().send(0);
    second.channel().send(0);
}

TEST_F(CtlShow, children_share_or_were_wiped) {
    const Node node("rxe0");
    const Region shared(node, 3 * page_size, {HCAMEM_MAPPING_PAGES, HCAMEM_FORK_POLICY_SHARE});
    const Region wiped(node, 5 * page_size, {HCAMEM_MAPPING_PAGES, HCAMEM_FORK_POLICY_ZERO});
    Child child(wait_for_end);
    static_cast<void>(child.channel().receive());
    const Json use = use_of(child.pid(), *Node::name_of("rxe0"));
    EXPECT_EQ(use.at("mapped_bytes"), 3 * page_size);
    EXPECT_EQ(use.at("wiped_bytes"), 5 * page_size);
    EXPECT_EQ(use.at("descriptors"), 1) << "the inherited one";
    EXPECT_EQ(regions_of(child.pid()).size(), 0U) << "it obtained nothing";
    child.channel().send(0);
}

TEST_F(CtlShow, narrowed_to_a_node) {
    const Node first("rxe0");
    const Node second("rxe1");
    const Region one(first, page_size);
    const Region two(second, 2 * page_size);
    const std::string name = *Node::name_of("rxe1");
    for (const std::string& given : {name, Node::path_of("rxe1"), std::string("rxe1")}) {
        const Json answer = show({"--node", given});
        ASSERT_EQ(answer.at("regions").size(), 1U);
        EXPECT_EQ(answer.at("regions").at(0).at("bytes"), 2 * page_size);
        EXPECT_EQ(answer.at("processes").at(0).at("uses").size(), 1U);
    }
}

TEST_F(CtlShow, regions_outlive_their_hca) {
    Hca hca("rxe1");
    const Node node("rxe1");
    const std::string name = *Node::name_of("rxe1");
    const Region region(node, page_size);
    hca.remove();
    const Json answer = show({"--node", name});
    ASSERT_EQ(answer.at("regions").size(), 1U);
    EXPECT_TRUE(answer.at("regions").at(0).at("hca").is_null());
    EXPECT_EQ(use_of(getpid(), name).at("mapped_bytes"), page_size);
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
}

TEST_F(CtlShow, nothing_is_an_answer_too) {
    const Outcome outcome = hcamemctl({"show", "--user", std::to_string(fresh_user())});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("No such region is handed out."), std::string::npos);
}

TEST_F(CtlShow, what_does_not_exist) {
    for (const auto& arguments : {std::vector<std::string>{"show", "--node", "hcamem77"},
                                  {"show", "--user", "no-such-user"}}) {
        const Outcome outcome = hcamemctl(arguments);
        EXPECT_EQ(outcome.status, 3) << outcome.err;
        EXPECT_EQ(outcome.out, "");
        EXPECT_NE(outcome.err.find(arguments[2]), std::string::npos) << outcome.err;
    }
}
