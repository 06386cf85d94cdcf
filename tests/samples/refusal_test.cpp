// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the machine refuses: HCAs, limits, permissions, memory, ports.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cstring>

#include "sample.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/unique_fd.hpp"

namespace {

using sample::failed_with;
using sample::run;
using sample::Words;

constexpr uid_t nobody = 65534;

const std::array<const char*, 4> all_samples{sample::pingpong, sample::rdma, sample::eager_pool,
                                             sample::containers};

std::string uverbs_path() {
    return "/dev/infiniband/" + support::device_of("infiniband_verbs", "rxe0");
}

/// Another mode for a file, put back at the end.
class FileMode {
  public:
    FileMode(std::string path, mode_t mode) : path_(std::move(path)) {
        struct stat status {};
        support::must(stat(path_.c_str(), &status), path_.c_str());
        old_ = status.st_mode & 07777;
        support::must(chmod(path_.c_str(), mode), path_.c_str());
    }
    FileMode(const FileMode&) = delete;
    FileMode& operator=(const FileMode&) = delete;
    ~FileMode() { chmod(path_.c_str(), old_); }

  private:
    std::string path_;
    mode_t old_ = 0;
};

/// A socket that holds a port, listening or not.
support::UniqueFd bound_socket(int port, bool listening) {
    support::UniqueFd fd(support::must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    support::must(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), "bind");
    if (listening) {
        support::must(listen(fd.get(), 1), "listen");
    }
    return fd;
}

TEST(Hca, one_that_does_not_exist_is_named_with_those_that_do) {
    for (const char* name : all_samples) {
        const auto end = run(name, {"-d", "mlx5_7"});
        EXPECT_TRUE(failed_with(sample::hca, "no HCA named 'mlx5_7'; there are: ", end));
        EXPECT_NE(end.err.find("rxe0"), std::string::npos);
        EXPECT_NE(end.err.find("rxe1"), std::string::npos);
    }
}

TEST(Hca, self_gives_one_line_though_both_processes_fail) {
    EXPECT_TRUE(failed_with(sample::hca, "mlx5_7", run(sample::rdma, {"--self", "-d", "mlx5_7"})));
}

TEST(Hca, a_port_or_gid_that_does_not_exist_is_named) {
    for (const char* name : all_samples) {
        EXPECT_TRUE(failed_with(sample::hca, "no port 9", run(name, {"-d", "rxe0", "-i", "9"})));
        EXPECT_TRUE(
            failed_with(sample::hca, "GID index 200", run(name, {"-d", "rxe0", "-g", "200"})));
    }
}

TEST(Hca, its_limits_are_named) {
    EXPECT_TRUE(failed_with(sample::hca, "--rx-depth",
                            run(sample::pingpong, {"-d", "rxe0", "-r", "1048576"})));
    EXPECT_TRUE(
        failed_with(sample::hca, "--mtu", run(sample::pingpong, {"-d", "rxe0", "-m", "4096"})));
}

TEST(Hca, without_permission_for_it_says_so) {
    const FileMode uverbs(uverbs_path(), 0600);
    for (const char* name : all_samples) {
        EXPECT_TRUE(
            failed_with(sample::hca, "Permission denied", run(name, {"-d", "rxe0"}, {nobody, {}})));
    }
}

TEST(Node, without_permission_for_it_says_so) {
    const FileMode node(sample::node_path(), 0600);
    const FileMode uverbs(uverbs_path(), 0666);
    for (const char* name : all_samples) {
        const auto end = run(name, {"-d", "rxe0"}, {nobody, {}});
        EXPECT_TRUE(failed_with(sample::memory, sample::node_path(), end));
    }
    EXPECT_TRUE(failed_with(sample::memory, sample::node_path(),
                            run(sample::rdma, {"--self", "-d", "rxe0"}, {nobody, {}})));
}

TEST(Node, an_ordinary_user_with_permission_needs_nothing_else) {
    const FileMode node(sample::node_path(), 0666);
    const FileMode uverbs(uverbs_path(), 0666);
    EXPECT_TRUE(
        sample::succeeded(run(sample::rdma, {"--self", "-d", "rxe0", "-n", "3"}, {nobody, {}})));
}

TEST(MemoryLimits, over_the_module_cap_the_limit_is_named) {
    const support::ModuleParameter cap("max_bytes", 0);
    for (const char* name : all_samples) {
        EXPECT_TRUE(failed_with(sample::memory, "max_bytes", run(name, {"-d", "rxe0"})));
    }
}

TEST(MemoryLimits, without_huge_pages_the_remedy_is_named) {
    support::write_text("/proc/sys/vm/nr_hugepages", "0");
    EXPECT_TRUE(failed_with(sample::memory, "nr_hugepages",
                            run(sample::pingpong, {"-d", "rxe0", "--memory", "hugetlb"})));
}

TEST(Port, in_use_is_refused_at_once) {
    const std::string port = sample::fresh_port();
    const auto holder = bound_socket(std::stoi(port), true);
    for (const char* name : {sample::pingpong, sample::rdma, sample::eager_pool}) {
        EXPECT_TRUE(failed_with(sample::no_connection,
                                "TCP port " + port + ": Address already in use",
                                run(name, {"-d", "rxe0", "-p", port})));
    }
}

TEST(Connection, refused_is_tried_again_and_then_said) {
    const std::string port = sample::fresh_port();
    const auto holder = bound_socket(std::stoi(port), false);
    EXPECT_TRUE(
        failed_with(sample::no_connection, "Connection refused",
                    run(sample::pingpong, {"-d", "rxe0", "-p", port, "--wait", "1", "127.0.0.1"})));
}

TEST(Connection, a_host_without_address_is_named) {
    EXPECT_TRUE(failed_with(sample::no_connection, "no-such-host.invalid",
                            run(sample::pingpong, {"-d", "rxe0", "no-such-host.invalid"})));
}

TEST(Connection, a_server_without_a_client_ends) {
    EXPECT_TRUE(failed_with(
        sample::no_connection, "no client came within 1 s",
        run(sample::pingpong, {"-d", "rxe0", "-p", sample::fresh_port(), "--wait", "1"})));
}

} // namespace
