// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "launch.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/guest.hpp"
#include "support/json.hpp"
#include "support/process.hpp"

namespace mpi {

namespace {

std::string build_folder() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path().string();
}

Pool read_pool(const support::Json& json) {
    Pool pool;
    pool.owner = json["owner"].string();
    pool.name = json["name"].string();
    pool.taken = json["taken"].unsigned_number() != 0;
    pool.bytes = json["most_bytes"].unsigned_number();
    for (const auto& range : json["ranges"].list()) {
        const auto begin = range.list().at(0).unsigned_number();
        pool.ranges.push_back({begin, begin + range.list().at(1).unsigned_number()});
    }
    return pool;
}

Report read_report(const std::string& line) {
    const auto json = support::Json::parse(line);
    Report report;
    report.program = json["program"].string();
    report.fall_back = json["fall_back"].string();
    report.out_of_reach = json["out_of_reach"].unsigned_number() != 0;
    for (const auto& pool : json["pools"].list()) {
        report.pools.push_back(read_pool(pool));
    }
    for (const char* path : {"dmabuf", "user_pages", "passed_through", "other_memory"}) {
        report.registrations[path] = json["registrations"][path].unsigned_number();
    }
    return report;
}

/// Processes that had nothing to do with RDMA, such as a shell on the way, are left out.
bool says_something(const Report& report) {
    std::uint64_t registered = 0;
    for (const auto& [path, count] : report.registrations) {
        registered += count;
    }
    return registered != 0 || !report.pools.empty();
}

std::vector<Report> read_reports(const std::string& path) {
    std::vector<Report> reports;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        Report report = read_report(line);
        if (says_something(report)) {
            reports.push_back(std::move(report));
        }
    }
    return reports;
}

std::vector<support::AddressRange> ranges_of(const std::vector<Report>& reports) {
    std::vector<support::AddressRange> ranges;
    for (const Report& report : reports) {
        for (const Pool& pool : report.pools) {
            ranges.insert(ranges.end(), pool.ranges.begin(), pool.ranges.end());
        }
    }
    return ranges;
}

void append(Words& words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
}

void add_case(const std::string& name, const Comparison& comparison) {
    std::ofstream file(support::environment("HCAMEM_RESULTS") + "/mpi.jsonl", std::ios::app);
    const Outcome& with = comparison.with;
    const Outcome& without = comparison.without;
    file << R"({"case": ")" << name << R"(", "kernel": ")" << support::kernel()
         << R"(", "soft_roce": ")" << support::environment("HCAMEM_RXE") << R"(", "processes": )"
         << with.reports.size() << R"(, "taken_bytes": )" << with.taken_bytes()
         << R"(, "registrations": {)";
    const char* separator = "";
    for (const char* path : {"dmabuf", "user_pages", "passed_through", "other_memory"}) {
        file << separator << '"' << path << R"(": )" << with.registrations(path);
        separator = ", ";
    }
    file << R"(}, "pins_with": )" << with.pins << R"(, "pins_without": )" << without.pins;
    if (with.usec > 0 && without.usec > 0) {
        file << R"(, "time_ratio": )" << with.usec / without.usec;
    }
    file << "}\n";
}

} // namespace

std::uint64_t Outcome::taken_bytes() const {
    std::uint64_t bytes = 0;
    for (const Report& report : reports) {
        for (const Pool& pool : report.pools) {
            bytes += pool.taken ? pool.bytes : 0;
        }
    }
    return bytes;
}

std::uint64_t Outcome::registrations(const std::string& path) const {
    std::uint64_t count = 0;
    for (const Report& report : reports) {
        count += report.registrations.at(path);
    }
    return count;
}

double usec_of_pingpong(const std::string& out) {
    const auto at = out.find("usec=");
    return at == std::string::npos ? 0 : std::stod(out.substr(at + 5));
}

// UCX takes soft-RoCE's IPv4 packets apart wrongly, so by the link-local IPv6 address, GID 0.
Words open_mpi(const std::string& transports) {
    return {"mpirun.openmpi",
            "--oversubscribe",
            "-np",
            "2",
            "--mca",
            "pml",
            "ucx",
            "--mca",
            "pml_ucx_tls",
            "any",
            "--mca",
            "pml_ucx_devices",
            "any",
            "-x",
            "UCX_TLS=" + transports,
            "-x",
            "UCX_NET_DEVICES=rxe1:1",
            "-x",
            "UCX_IB_GID_INDEX=0"};
}

Words open_mpi_environment() {
    return {"OMPI_MCA_plm=isolated", "OMPI_ALLOW_RUN_AS_ROOT=1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
}

Words open_mpi_libfabric() {
    return {"mpirun.openmpi",
            "--oversubscribe",
            "-np",
            "2",
            "-x",
            "FI_PROVIDER=verbs,ofi_rxm",
            "-x",
            "FI_UNIVERSE_SIZE=2",
            "-x",
            "FI_VERBS_IFACE=v1",
            "-x",
            "FI_OFI_RXM_MSG_TX_SIZE=128",
            "-x",
            "FI_OFI_RXM_MSG_RX_SIZE=128",
            "--mca",
            "pml",
            "cm",
            "--mca",
            "mtl",
            "ofi"};
}

Words mpich() {
    return {"mpirun.mpich",
            "-np",
            "2",
            "-genv",
            "UCX_TLS",
            "rc,self",
            "-genv",
            "UCX_NET_DEVICES",
            "rxe1:1",
            "-genv",
            "MPIR_CVAR_NOLOCAL",
            "1",
            "-genv",
            "UCX_IB_GID_INDEX",
            "0"};
}

std::string program(const std::string& name) {
    return build_folder() + "/tests/mpi/" + name;
}

std::string launcher() {
    return build_folder() + "/bin/hcamem-run";
}

/// What everybody holds through all nodes.
std::uint64_t held_bytes() {
    std::uint64_t bytes = 0;
    for (const auto& node : std::filesystem::directory_iterator("/sys/class/hcamem")) {
        bytes += support::read_number(node.path() / "bytes_in_use");
    }
    return bytes;
}

std::string library_folder() {
    return build_folder() + "/lib";
}

Outcome launch(const Command& command, Mode mode) {
    static unsigned runs = 0;
    const std::string report = "/tmp/mpi-report-" + std::to_string(++runs);
    Words all = command.launcher;
    if (command.preload) {
        all.push_back(launcher());
    }
    append(all, command.words);
    support::ProcessOptions how;
    how.environment = {"OMPI_MCA_plm=isolated",
                       "OMPI_ALLOW_RUN_AS_ROOT=1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                       "HCAMEM_PRELOAD_REPORT=" + report,
                       "HCAMEM_PRELOAD_STRICT=1",
                       std::string("HCAMEM_PRELOAD_TAKE=") + (mode == Mode::take ? "all" : "none")};
    append(how.environment, command.environment);
    support::PagePins probes(16384);
    support::Process process(all, how);
    const auto end = process.finish(std::chrono::seconds(240));
    EXPECT_TRUE(support::eventually([] { return held_bytes() == 0; }));
    Outcome outcome;
    outcome.status = end.status;
    outcome.out = end.out;
    outcome.err = end.err;
    outcome.usec = command.usec_in != nullptr ? command.usec_in(end.out) : 0;
    outcome.reports = read_reports(report);
    const auto calls = probes.calls();
    outcome.pins = support::touching(calls, ranges_of(outcome.reports)).size();
    return outcome;
}

Comparison compare(const std::string& name, const Command& command) {
    Comparison comparison{launch(command, Mode::take), launch(command, Mode::none)};
    add_case(name, comparison);
    return comparison;
}

void expect_taken(const Comparison& comparison, const std::string& owner,
                  const std::vector<std::string>& pools) {
    const Outcome& with = comparison.with;
    const Outcome& without = comparison.without;
    EXPECT_EQ(without.status, 0) << without.out << without.err;
    ASSERT_EQ(with.status, 0) << with.out << with.err;
    ASSERT_EQ(with.reports.size(), 2U);
    for (const Report& report : with.reports) {
        EXPECT_EQ(report.fall_back, "");
        EXPECT_FALSE(report.out_of_reach);
        std::map<std::string, std::uint64_t> taken;
        for (const Pool& pool : report.pools) {
            EXPECT_TRUE(pool.taken) << pool.name;
            EXPECT_EQ(pool.owner, owner);
            taken[pool.name] += pool.bytes;
        }
        for (const std::string& name : pools) {
            EXPECT_GT(taken[name], 0U) << name << " was not taken in " << report.program;
        }
    }
    // The same pools by themselves: the probes see how they are pinned.
    EXPECT_EQ(without.taken_bytes(), 0U);
    EXPECT_GT(without.pins, 0U);
    if (support::rxe_imports_dma_bufs()) {
        EXPECT_GT(with.registrations("dmabuf"), 0U);
        EXPECT_EQ(with.registrations("user_pages"), 0U);
        EXPECT_EQ(with.pins, 0U);
    } else { // ours nevertheless, registered as any memory is
        EXPECT_EQ(with.registrations("dmabuf"), 0U);
        EXPECT_GT(with.registrations("user_pages"), 0U);
        EXPECT_GT(with.pins, 0U);
    }
    EXPECT_EQ(with.registrations("passed_through"), 0U);
}

} // namespace mpi
