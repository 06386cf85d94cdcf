// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl list: nodes, usage and limits, for everybody.
#include <gtest/gtest.h>

#include "support/guest.hpp"
#include "support/hca.hpp"
#include "support/node.hpp"
#include "tool.hpp"

using namespace support;

namespace {

JsonValue list(const Circumstances& circumstances = {}) {
    const Outcome outcome = hcamemctl({"list", "--json"}, circumstances);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.json();
}

const JsonValue& node_of(const JsonValue& answer, const std::string& hca) {
    for (const JsonValue& node : answer["nodes"].array()) {
        if (node["hca"].string() == hca) {
            return node;
        }
    }
    throw std::runtime_error("no node of " + hca);
}

} // namespace

TEST(CtlList, tells_nodes_as_sysfs_does) {
    const JsonValue answer = list();
    ASSERT_EQ(answer["nodes"].size(), Node::names().size());
    for (const JsonValue& node : answer["nodes"].array()) {
        EXPECT_EQ(node["hca"].string(), Node::ibdev_of(node["node"].string()));
        EXPECT_EQ(node["path"].string(), Node::path_of(node["hca"].string()));
        EXPECT_TRUE(node["numa_node"].is_null()) << "soft-RoCE over veth has none";
    }
}

TEST(CtlList, usage_follows_what_is_obtained) {
    const Node node("rxe1");
    const JsonValue before = list();
    const Region region(node, 7 * page_size);
    const JsonValue after = list();
    const auto grown = [&](auto get) { return get(after) - get(before); };
    const std::int64_t bytes = 7 * page_size;
    EXPECT_EQ(grown([](const JsonValue& v) { return node_of(v, "rxe1")["bytes_in_use"].number(); }),
              bytes);
    EXPECT_EQ(grown([](const JsonValue& v) { return node_of(v, "rxe1")["regions"].number(); }), 1);
    EXPECT_EQ(grown([](const JsonValue& v) { return node_of(v, "rxe0")["bytes_in_use"].number(); }),
              0);
    EXPECT_EQ(grown([](const JsonValue& v) { return v["usage"]["total_bytes"].number(); }), bytes);
    EXPECT_EQ(grown([](const JsonValue& v) { return v["usage"]["user"]["bytes"].number(); }),
              bytes);
    EXPECT_EQ(after["usage"]["user"]["user"].string(), "root");
}

TEST(CtlList, limits_are_those_of_the_module_and_of_the_shell) {
    const JsonValue answer = list({{{}, 3 * MiB, {}}, {}});
    for (const char* name :
         {"max_bytes", "max_bytes_per_user", "reserve_bytes", "low_bytes", "critical_bytes"}) {
        EXPECT_EQ(static_cast<std::uint64_t>(answer["limits"][name].number()),
                  read_number(std::string("/sys/module/hcamem/parameters/") + name));
    }
    EXPECT_EQ(answer["limits"]["memlock"].number(), 3 * MiB);
    EXPECT_TRUE(list({{{}, RLIM_INFINITY, {}}, {}})["limits"]["memlock"].is_null());
    EXPECT_EQ(static_cast<std::uint64_t>(answer["memory"]["total_bytes"].number()),
              meminfo("MemTotal"));
    EXPECT_GT(answer["memory"]["available_bytes"].number(), 0);
}

TEST(CtlList, an_ordinary_user_gets_the_same_answer) {
    const Node node("rxe0");
    const Region region(node, huge_size);
    const JsonValue root = list();
    const JsonValue user = list({nobody, {}});
    EXPECT_EQ(node_of(user, "rxe0")["bytes_in_use"].number(),
              node_of(root, "rxe0")["bytes_in_use"].number());
    EXPECT_EQ(user["usage"]["total_bytes"].number(), root["usage"]["total_bytes"].number());
    EXPECT_EQ(user["usage"]["user"]["user"].string(), "nobody");
    EXPECT_EQ(user["usage"]["user"]["bytes"].number(), 0);
    EXPECT_TRUE(user["usage"]["largest_user"].is_null()) << "who else holds what is for root";
    EXPECT_EQ(root["usage"]["largest_user"]["user"].string(), "root");
}

TEST(CtlList, memory_of_a_gone_hca_is_told) {
    Hca hca("rxe1");
    const Node node("rxe1");
    const Region region(node, 3 * page_size);
    EXPECT_EQ(list()["usage"]["gone_bytes"].number(), 0);
    hca.remove();
    const JsonValue answer = list();
    EXPECT_EQ(answer["usage"]["gone_bytes"].number(), 3 * page_size);
    EXPECT_EQ(answer["nodes"].size(), 1U);
    EXPECT_NE(hcamemctl({"list"}).out.find("(gone)"), std::string::npos);
}

TEST(CtlList, without_an_hca_it_says_so) {
    Hca first("rxe0");
    Hca second("rxe1");
    first.remove();
    second.remove();
    const JsonValue answer = list();
    EXPECT_EQ(answer["nodes"].size(), 0U);
    EXPECT_TRUE(answer["usage"]["total_bytes"].is_null()) << "there is no node to ask";
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
