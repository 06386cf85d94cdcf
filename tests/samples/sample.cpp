// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "sample.hpp"

#include <algorithm>
#include <filesystem>

#include "support/guest.hpp"

namespace sample {

std::string path(const std::string& name) {
    const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    return (here.parent_path() / "bin" / name).string();
}

Words command(const std::string& name, const Words& words) {
    Words all{path(name)};
    all.insert(all.end(), words.begin(), words.end());
    return all;
}

support::Finished run(const std::string& name, const Words& words,
                      const support::ProcessOptions& how) {
    return support::run(command(name, words), how);
}

std::string node_path() {
    return "/dev/infiniband/" + support::device_of("hcamem", "rxe0");
}

std::uint64_t bytes_in_use() {
    return support::read_number("/sys/class/hcamem/" + support::device_of("hcamem", "rxe0") +
                                "/bytes_in_use");
}

std::string fresh_port() {
    static int next = 20000;
    return std::to_string(next++);
}

bool listens(const std::string& port) {
    return support::eventually(
        [&] { return support::shell("ss -Hltn 'sport = :" + port + "' | grep -q LISTEN") == 0; });
}

namespace {

Words side_words(const Words& common, const std::string& port, const Words& own) {
    Words words{"-d", "rxe0", "-p", port};
    words.insert(words.end(), common.begin(), common.end());
    words.insert(words.end(), own.begin(), own.end());
    return words;
}

} // namespace

Pair start_pair(const std::string& name, const Words& common, const Words& server,
                const Words& client) {
    const std::string port = fresh_port();
    Words client_words = side_words(common, port, client);
    client_words.insert(client_words.end(), patiently.begin(), patiently.end());
    client_words.emplace_back("127.0.0.1");
    support::Process started(command(name, side_words(common, port, server)));
    return {std::move(started), support::Process(command(name, client_words))};
}

Pair start_endless_pair(const Words& common) {
    Words words{"-n", "1000000000"};
    words.insert(words.end(), common.begin(), common.end());
    Pair pair = start_pair(pingpong, words);
    pair.server.await_output("remote");
    pair.client.await_output("remote");
    return pair;
}

testing::AssertionResult succeeded(const support::Finished& end) {
    if (end.status == success && end.err.empty()) {
        return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << "ended with " << end.status << ", stderr: " << end.err;
}

testing::AssertionResult failed_with(Exit code, const std::string& reason,
                                     const support::Finished& end) {
    const auto lines = std::count(end.err.begin(), end.err.end(), '\n');
    const bool named = end.err.starts_with("hcamem_") || end.err.starts_with("stl_");
    const bool has_result = end.out.find("usec/iter") != std::string::npos;
    if (end.status == code && lines == 1 && end.err.ends_with("\n") && named && !has_result &&
        end.err.find(reason) != std::string::npos) {
        return testing::AssertionSuccess();
    }
    return testing::AssertionFailure()
           << "ended with " << end.status << " instead of " << code << ", or not with the one line"
           << " about '" << reason << "'; stderr: " << end.err << "stdout: " << end.out;
}

std::string fresh_json() {
    static int next = 0;
    return testing::TempDir() + "result" + std::to_string(next++) + ".json";
}

std::string pool_registration() {
    return support::rxe_imports_dma_bufs() ? "dma_buf" : "user_pages";
}

} // namespace sample
