// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// hcamemctl watch: each event once, as it happens.
#include <gtest/gtest.h>

#include <csignal>
#include <regex>

#include "support/guest.hpp"
#include "support/hca.hpp"
#include "support/node.hpp"
#include "tool.hpp"
#include "trace_buffer.hpp"

using namespace support;

namespace {

/// Makes reclaim run, upon which the driver looks at its thresholds.
void make_kernel_look_for_memory() {
    write_text("/proc/sys/vm/drop_caches", "2");
}

/// Raises thresholds above what is available, so that memory is short.
class Shortage {
  public:
    explicit Shortage(bool critical)
        : low_("low_bytes", meminfo("MemTotal")),
          critical_("critical_bytes", critical ? meminfo("MemTotal") : 0) {
        make_kernel_look_for_memory();
    }

  private:
    ModuleParameter low_;
    ModuleParameter critical_;
};

} // namespace

TEST(CtlWatch, tells_pressure_once_for_all_nodes) {
    ASSERT_GT(Node::names().size(), 1U);
    const TraceBuffer trace;
    RunningTool tool({"watch", "--json"}, {nobody, {}});
    EXPECT_NE(tool.error_line().find("watching"), std::string::npos);
    std::size_t told = 0;
    for (const bool critical : {false, true}) {
        const std::string level = critical ? "critical" : "low";
        const Shortage shortage(critical);
        JsonValue event;
        do {
            event = parse_json(tool.line());
            ++told;
        } while (event["event"].string() != level);
        EXPECT_GT(event["wanted_bytes"].number(), 0);
        EXPECT_LE(event["wanted_bytes"].number(), static_cast<std::int64_t>(meminfo("MemTotal")));
        EXPECT_GT(event["available_bytes"].number(), 0);
        EXPECT_TRUE(std::regex_match(
            event["time"].string(),
            std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d)")))
            << event["time"].string();
    }
    tool.send(SIGINT);
    EXPECT_EQ(tool.wait(), 0);
    told += tool.rest().size();
    EXPECT_LE(told, trace.events("hcamem_event").size())
        << "every node says it, and it is one event";
}

TEST(CtlWatch, tells_hcas_that_go_and_come) {
    Hca hca("rxe1");
    const std::string name = *Node::name_of("rxe1");
    RunningTool tool({"watch"});
    EXPECT_NE(tool.error_line().find(name + " (rxe1)"), std::string::npos);
    hca.remove();
    EXPECT_NE(tool.line().find("  gone  " + name + " (rxe1)"), std::string::npos);
    hca.add();
    EXPECT_NE(tool.line().find("  added  " + *Node::name_of("rxe1") + " (rxe1)"),
              std::string::npos);
    // What came is watched like the rest.
    hca.remove();
    EXPECT_NE(tool.line().find("  gone  "), std::string::npos);
    tool.send(SIGTERM);
    EXPECT_EQ(tool.wait(), 0);
}

TEST(CtlWatch, keeps_to_the_hca_asked_for) {
    Hca other("rxe1");
    RunningTool tool({"watch", "--hca", "rxe0", "--json"});
    EXPECT_EQ(tool.error_line().find("rxe1"), std::string::npos);
    other.remove();
    other.add();
    const Shortage shortage(false);
    EXPECT_EQ(parse_json(tool.line())["event"].string(), "low");
    tool.send(SIGINT);
    EXPECT_EQ(tool.wait(), 0);
}

TEST(CtlWatch, does_not_keep_a_gone_hcas_node) {
    Hca hca("rxe1");
    RunningTool tool({"watch"});
    static_cast<void>(tool.error_line());
    const std::string name = *Node::name_of("rxe1");
    hca.remove();
    static_cast<void>(tool.line());
    hca.add();
    EXPECT_NE(tool.line().find(name), std::string::npos) << "its number is free again";
}
