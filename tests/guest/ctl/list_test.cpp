// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl list: nodes, usage and limits, for everybody.
#include <gtest/gtest.h>

#include "support/guest.hpp"
#include "support/hca.hpp"
#include "support/node.hpp"
#include "tool.hpp"

using namespace support;

namespace {

Json list(const Circumstances& circumstances = {}) {
    const Outcome outcome = hcamemctl({"list", "--json"}, circumstances);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.json();
}

Json node_of(const Json& answer, const std::string& hca) {
    for (const Json& node : answer.at("nodes")) {
        if (node.at("hca") == hca) {
            return node;
        }
    }
    throw std::runtime_error("no node of " + hca);
}

} // namespace

TEST(CtlList, tells_nodes_as_sysfs_does) {
    const Json answer = list();
    ASSERT_EQ(answer.at("nodes").size(), Node::names().size());
    for (const Json& node : answer.at("nodes")) {
        EXPECT_EQ(node.at("hca"), Node::ibdev_of(node.at("node")));
        EXPECT_EQ(node.at("path"), Node::path_of(node.at("hca")));
        EXPECT_TRUE(node.at("numa_node").is_null()) << "soft-RoCE over veth has none";
    }
}

TEST(CtlList, usage_follows_what_is_obtained) {
    const Node node("rxe1");
    const Json before = list();
    const Region region(node, 7 * page_size);
    const Json after = list();
    const auto grown = [&](auto get) {
        return get(after).template get<std::int64_t>() - get(before).template get<std::int64_t>();
    };
    const std::int64_t bytes = 7 * page_size;
    EXPECT_EQ(grown([](const Json& v) { return node_of(v, "rxe1").at("bytes_in_use"); }), bytes);
    EXPECT_EQ(grown([](const Json& v) { return node_of(v, "rxe1").at("regions"); }), 1);
    EXPECT_EQ(grown([](const Json& v) { return node_of(v, "rxe0").at("bytes_in_use"); }), 0);
    EXPECT_EQ(grown([](const Json& v) { return v.at("total_bytes"); }), bytes);
    EXPECT_EQ(grown([](const Json& v) { return v.at("user_bytes"); }), bytes);
}

TEST(CtlList, limits_are_those_of_the_module) {
    const Json answer = list();
    for (const char* name :
         {"max_bytes", "max_bytes_per_user", "reserve_bytes", "low_bytes", "critical_bytes"}) {
        EXPECT_EQ(answer.at("limits").at(name),
                  read_number(std::string("/sys/module/hcamem/parameters/") + name));
    }
    EXPECT_GT(answer.at("available_bytes"), 0);
    EXPECT_LE(answer.at("available_bytes"), meminfo("MemTotal"));
}

TEST(CtlList, an_ordinary_user_gets_the_same_answer) {
    const Node node("rxe0");
    const Region region(node, huge_size);
    const Json root = list();
    const Json user = list({nobody, {}});
    EXPECT_EQ(node_of(user, "rxe0").at("bytes_in_use"), node_of(root, "rxe0").at("bytes_in_use"));
    EXPECT_EQ(user.at("total_bytes"), root.at("total_bytes"));
    EXPECT_EQ(user.at("user_bytes"), 0) << "his own";
}

TEST(CtlList, without_an_hca_it_says_so) {
    Hca first("rxe0");
    Hca second("rxe1");
    first.remove();
    second.remove();
    const Json answer = list();
    EXPECT_EQ(answer.at("nodes").size(), 0U);
    EXPECT_TRUE(answer.at("total_bytes").is_null()) << "there is no node to ask";
    const Outcome text = hcamemctl({"list"});
    EXPECT_EQ(text.status, 0);
    EXPECT_NE(text.out.find("No HCA has a node"), std::string::npos) << text.out;
    EXPECT_NE(text.out.find("max_bytes"), std::string::npos) << text.out;
}

TEST(CtlList, table_for_people) {
    const Node node("rxe0");
    const Region region(node, 3 * MiB);
    const std::string text = hcamemctl({"list"}).out;
    EXPECT_NE(text.find("NODE     HCA   NUMA  IN USE  REGIONS\n"), std::string::npos) << text;
    EXPECT_NE(text.find("rxe0     -"), std::string::npos) << text;
    EXPECT_NE(text.find("3M handed out"), std::string::npos) << text;
    EXPECT_NE(text.find("3M by root"), std::string::npos) << text;
}
