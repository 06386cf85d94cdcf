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

/// Raises thresholds above what is available, so that memory is short, and has the
/// driver notice. It looks at them when reclaim runs, ten times a second at most.
class Shortage {
  public:
    Shortage(bool critical, const TraceBuffer& trace)
        : low_("low_bytes", meminfo("MemTotal")),
          critical_("critical_bytes", critical ? meminfo("MemTotal") : 0) {
        const std::string type =
            std::to_string(critical ? HCAMEM_EVENT_CRITICAL : HCAMEM_EVENT_LOW);
        EXPECT_TRUE(eventually([&] {
            write_text("/proc/sys/vm/drop_caches", "2");
            const auto events = trace.events("hcamem_event");
            return !events.empty() && events.back().at("type") == type;
        }));
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
        const Shortage shortage(critical, trace);
        Json event;
        do {
            event = Json::parse(tool.line());
            ++told;
        } while (event.at("event") != level);
        EXPECT_GT(event.at("wanted_bytes"), 0);
        EXPECT_LE(event.at("wanted_bytes"), static_cast<std::int64_t>(meminfo("MemTotal")));
        EXPECT_GT(event.at("available_bytes"), 0);
        EXPECT_TRUE(std::regex_match(event.at("time").get<std::string>(),
                                     std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4})")))
            << event.at("time");
    }
    tool.send(SIGINT);
    EXPECT_EQ(tool.wait(), 128 + SIGINT);
    told += tool.rest().size();
    EXPECT_LE(told, trace.events("hcamem_event").size())
        << "every node says it, and it is one event";
}

TEST(CtlWatch, tells_hcas_that_go_and_come) {
    Hca hca("rxe1");
    const std::string name = *Node::name_of("rxe1");
    const std::string path = Node::path_of("rxe1");
    RunningTool tool({"watch"});
    EXPECT_NE(tool.error_line().find("watching"), std::string::npos);
    EXPECT_TRUE(tool.has_open(path));
    hca.remove();
    EXPECT_TRUE(tool.line().ends_with("  gone  node=" + name + "  hca=rxe1"));
    EXPECT_TRUE(eventually([&] { return !tool.has_open(path); })) << "it closes what is gone";
    hca.add();
    EXPECT_EQ(*Node::name_of("rxe1"), name) << "the tool does not keep the number in use";
    EXPECT_TRUE(tool.line().ends_with("  added  node=" + name + "  hca=rxe1"));
    // What came is watched like the rest.
    hca.remove();
    EXPECT_NE(tool.line().find("  gone  "), std::string::npos);
}
