// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Each tracepoint fires when its thing is done, with the right fields.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <regex>

#include "guest/importer/importer.hpp"
#include "support/guest.hpp"
#include "support/hca.hpp"
#include "support/node.hpp"
#include "tool.hpp"
#include "trace_buffer.hpp"

using namespace support;

namespace {

/// Whether this process did it; the buffer may have missed its name.
bool is_ours(const TraceEvent& event) {
    return event.at("task").ends_with("-" + std::to_string(getpid()));
}

} // namespace

TEST(Trace, create_and_destroy_of_a_region) {
    const Node node("rxe0");
    const TraceBuffer trace;
    std::string id;
    {
        const Region region(node, 3 * MiB, {HCAMEM_MAPPING_HUGE, HCAMEM_FORK_POLICY_SHARE});
        const auto created = trace.events("hcamem_region_create");
        ASSERT_EQ(created.size(), 1U);
        EXPECT_TRUE(is_ours(created[0])) << created[0].at("task");
        EXPECT_EQ(created[0].at("bytes"), std::to_string(3 * MiB));
        EXPECT_EQ(created[0].at("mapping"), std::to_string(HCAMEM_MAPPING_HUGE));
        EXPECT_EQ(created[0].at("fork"), std::to_string(HCAMEM_FORK_POLICY_SHARE));
        id = created[0].at("region");
        const Json shown = regions_of(getpid()).at(0);
        EXPECT_EQ(shown.at("region").dump(), id) << "the same number everywhere";
        std::int64_t chunks = 0;
        for (const Json& some : shown.at("chunks")) {
            chunks += some.at("count").get<std::int64_t>();
        }
        EXPECT_EQ(created[0].at("chunks"), std::to_string(chunks));
        EXPECT_EQ(trace.events("hcamem_region_destroy").size(), 0U);
    }
    const auto destroyed = trace.events("hcamem_region_destroy");
    ASSERT_EQ(destroyed.size(), 1U);
    EXPECT_EQ(destroyed[0].at("region"), id);
    EXPECT_EQ(destroyed[0].at("bytes"), std::to_string(3 * MiB));
}

TEST(Trace, export_and_attach) {
    const Importer importer;
    Attachment attachment;
    const Node node("rxe0");
    const Region region(node, MiB);
    const TraceBuffer trace;
    const UniqueFd dma_buf = node.export_range(region.data() + 5 * page_size, 2 * page_size);
    const auto exported = trace.events("hcamem_export");
    ASSERT_EQ(exported.size(), 1U);
    EXPECT_EQ(exported[0].at("offset"), std::to_string(5 * page_size));
    EXPECT_EQ(exported[0].at("bytes"), std::to_string(2 * page_size));
    EXPECT_EQ(trace.events("hcamem_attach").size(), 0U);
    ASSERT_EQ(attachment.attach(dma_buf.get(), IMPORTER_STATIC), 0);
    const auto attached = trace.events("hcamem_attach");
    ASSERT_EQ(attached.size(), 1U);
    EXPECT_EQ(attached[0].at("region"), exported[0].at("region"));
    EXPECT_EQ(attached[0].at("device"), "hcamem-importer");
    EXPECT_TRUE(is_ours(attached[0])) << attached[0].at("task");
}

TEST(Trace, every_refusal_with_the_limit_that_refused) {
    const TraceBuffer trace;
    const uid_t uid = fresh_user();
    const auto attempt = [uid](rlim_t memlock, std::uint64_t bytes) {
        return value_from_child({uid, memlock, {}},
                                [bytes] { return Region::attempt(Node("rxe0"), bytes); });
    };
    struct Refusal {
        const char* parameter;
        std::uint64_t limit;
        std::uint64_t bytes;
        int error;
    };
    const Refusal refusals[] = {
        {"max_bytes", 512 * KiB, MiB, EDQUOT},
        {"max_bytes_per_user", 128 * KiB, 256 * KiB, EDQUOT},
        {"reserve_bytes", meminfo("MemTotal"), 64 * KiB, ENOMEM},
    };
    EXPECT_EQ(attempt(64 * KiB, MiB), EAGAIN);
    for (const Refusal& refusal : refusals) {
        const ModuleParameter limit(refusal.parameter, refusal.limit);
        EXPECT_EQ(attempt(RLIM_INFINITY, refusal.bytes), refusal.error) << refusal.parameter;
    }
    const auto traced = trace.events("hcamem_charge_refused");
    ASSERT_EQ(traced.size(), 1 + std::size(refusals));
    const auto check = [uid](const TraceEvent& event, const Refusal& refusal) {
        EXPECT_EQ(event.at("uid"), std::to_string(uid)) << refusal.parameter;
        EXPECT_EQ(event.at("bytes"), std::to_string(refusal.bytes)) << refusal.parameter;
        EXPECT_EQ(event.at("limit"), std::to_string(refusal.limit)) << refusal.parameter;
        EXPECT_EQ(event.at("error"), std::to_string(-refusal.error)) << refusal.parameter;
    };
    check(traced[0], {"RLIMIT_MEMLOCK", 64 * KiB, MiB, EAGAIN});
    for (std::size_t i = 0; i < std::size(refusals); ++i) {
        check(traced[i + 1], refusals[i]);
    }
}

TEST(Trace, what_is_printed_can_be_filtered_by_the_same_name) {
    for (const char* event : {"hcamem_region_create", "hcamem_region_destroy", "hcamem_export",
                              "hcamem_attach", "hcamem_charge_refused", "hcamem_event"}) {
        const std::string format =
            read_text(std::string("/sys/kernel/tracing/events/hcamem/") + event + "/format");
        const auto printed = format.find("print fmt: ");
        const std::regex name("([a-z]+)=%");
        std::size_t names = 0;
        for (std::sregex_iterator at(format.begin() + static_cast<std::ptrdiff_t>(printed),
                                     format.end(), name);
             at != std::sregex_iterator(); ++at, ++names) {
            const std::regex field("field:[^;]* " + (*at)[1].str() + "(\\[\\d+\\])?;");
            EXPECT_TRUE(std::regex_search(format, field)) << event << ' ' << (*at)[1];
        }
        EXPECT_GT(names, 0U) << format;
    }
}

TEST(Trace, events_for_holders) {
    const TraceBuffer trace;
    {
        const ModuleParameter low("low_bytes", meminfo("MemTotal"));
        // Again, for the driver looks no more often than ten times a second.
        ASSERT_TRUE(eventually([&] {
            write_text("/proc/sys/vm/drop_caches", "2");
            return !trace.events("hcamem_event").empty();
        }));
    }
    const TraceEvent pressure = trace.events("hcamem_event").front();
    EXPECT_EQ(pressure.at("type"), std::to_string(HCAMEM_EVENT_LOW));
    EXPECT_GT(std::stoull(pressure.at("wanted")), 0U);
    EXPECT_EQ(pressure.at("node"), "") << "the machine's memory is short";
    Hca hca("rxe1");
    const std::string name = *Node::name_of("rxe1");
    hca.remove();
    const TraceEvent gone = trace.events("hcamem_event").back();
    EXPECT_EQ(gone.at("type"), std::to_string(HCAMEM_EVENT_GONE));
    EXPECT_EQ(gone.at("node"), name);
}
