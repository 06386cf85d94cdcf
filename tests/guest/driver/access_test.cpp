// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The kernel's own ways into a process's memory: those that pin pages work on `pages`
// mappings and get EFAULT on `huge` ones where the kernel can tell; a debugger gets in always.
#include <gtest/gtest.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <cstring>
#include <vector>

#include "pinning.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

class Access : public PinningModes {};
INSTANTIATE_TEST_SUITE_P(, Access, both_mappings, mapping_name);

/// A TCP connection with ourselves.
struct Connection {
    Connection() {
        const UniqueFd listener(must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        must(bind(listener.get(), generic, length), "bind");
        must(listen(listener.get(), 1), "listen");
        must(getsockname(listener.get(), generic, &length), "getsockname");
        sender = UniqueFd(must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
        const int on = 1;
        must(setsockopt(sender.get(), SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on), "SO_ZEROCOPY");
        must(connect(sender.get(), generic, length), "connect");
        receiver =
            UniqueFd(must(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept"));
    }
    UniqueFd sender;
    UniqueFd receiver;
};

} // namespace

TEST_P(Access, direct_io_writes_from_it_and_reads_into_it) {
    const BlockDevice device;
    const UniqueFd fd = device.open_direct();
    const Node node;
    const std::uint64_t before = node.total();
    Region region(node, huge_size, kind());
    fill(region.bytes(), 1);
    const std::size_t half = 256 * KiB;
    const ssize_t written = pwrite(fd.get(), region.data() + page_size, half, 4 * MiB);
    expect_moved(written, half);
    if (written == static_cast<ssize_t>(half)) {
        void* target = region.data() + MiB;
        ASSERT_EQ(pread(fd.get(), target, half, 4 * MiB), static_cast<ssize_t>(half));
        EXPECT_EQ(std::memcmp(target, region.data() + page_size, half), 0);
    }
    region.unmap();
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

TEST_P(Access, zero_copy_send_takes_its_pages) {
    const Connection tcp;
    const Node node;
    const std::uint64_t before = node.total();
    Region region(node, huge_size, kind());
    fill(region.bytes(), 1);
    const std::size_t length = 64 * KiB;
    const ssize_t sent =
        send(tcp.sender.get(), region.data() + page_size, length, MSG_ZEROCOPY | MSG_NOSIGNAL);
    if (must_work()) {
        ASSERT_GT(sent, 0) << std::strerror(errno);
    }
    if (must_fail()) {
        EXPECT_EQ(sent, -1);
        EXPECT_EQ(errno, EFAULT);
    }
    if (sent > 0) {
        std::vector<unsigned char> got(static_cast<std::size_t>(sent));
        ASSERT_EQ(recv(tcp.receiver.get(), got.data(), got.size(), MSG_WAITALL), sent);
        EXPECT_EQ(std::memcmp(got.data(), region.data() + page_size, got.size()), 0);
        // The notice that the pages are free again.
        pollfd ready{tcp.sender.get(), 0, 0};
        ASSERT_EQ(poll(&ready, 1, 60000), 1);
        char control[128];
        msghdr message{};
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        ASSERT_EQ(recvmsg(tcp.sender.get(), &message, MSG_ERRQUEUE), 0);
    }
    region.unmap();
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

TEST_P(Access, an_ordinary_write_and_read_copy) {
    const Node node;
    const Region region(node, huge_size, kind());
    fill(region.bytes(), 1);
    const Connection tcp;
    const std::size_t length = 32 * KiB;
    ASSERT_EQ(write(tcp.sender.get(), region.data() + 100, length), static_cast<ssize_t>(length));
    ASSERT_EQ(recv(tcp.receiver.get(), region.data() + MiB + 7, length, MSG_WAITALL),
              static_cast<ssize_t>(length));
    EXPECT_EQ(std::memcmp(region.data() + 100, region.data() + MiB + 7, length), 0);
}

TEST_P(Access, another_process_reads_and_writes_it) {
    const Node node;
    const Region region(node, huge_size, kind());
    fill(region.bytes(), 1);
    const std::size_t length = 3 * page_size;
    std::vector<unsigned char> seen(length);
    iovec here{seen.data(), length};
    iovec there{region.data() + page_size + 11, length};
    const pid_t pid = getpid();
    const ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
    const int error = errno;
    // This call walks the page tables slowly, where every kernel can tell.
    if (!must_work()) {
        EXPECT_EQ(got, -1);
        EXPECT_EQ(error, EFAULT);
        return;
    }
    ASSERT_EQ(got, static_cast<ssize_t>(length)) << std::strerror(error);
    EXPECT_TRUE(holds(seen, 1, page_size + 11));
    std::memset(seen.data(), 0x5c, length);
    ASSERT_EQ(process_vm_writev(pid, &here, 1, &there, 1, 0), static_cast<ssize_t>(length));
    EXPECT_TRUE(all_equal({region.data() + page_size + 11, length}, 0x5c));
    EXPECT_TRUE(holds({region.data(), page_size + 11}, 1));
}

TEST_P(Access, a_debugger_peeks_and_pokes) {
    const Node node;
    Child debuggee([&](Channel& channel) {
        const Region region(node, 2 * huge_size, kind());
        fill(region.bytes(), 1);
        channel.send(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(region.data())));
        (void)channel.receive();
        const std::uint64_t poked = 0x1122334455667788;
        require(std::memcmp(region.data() + huge_size - 3, &poked, sizeof poked) == 0, "poked");
        require(holds({region.data(), huge_size - 3}, 1), "nothing before it");
        require(holds({region.data() + huge_size + 5, huge_size - 5}, 1, huge_size + 5),
                "nothing after it");
    });
    auto* there = reinterpret_cast<unsigned char*>(debuggee.channel().receive());
    ASSERT_EQ(ptrace(PTRACE_ATTACH, debuggee.pid(), nullptr, nullptr), 0);
    int status = 0;
    ASSERT_EQ(waitpid(debuggee.pid(), &status, 0), debuggee.pid());
    for (const std::size_t at : {std::size_t{0}, std::size_t{page_size - 3}, huge_size - 3,
                                 huge_size, 2 * huge_size - 8}) {
        errno = 0;
        const long word = ptrace(PTRACE_PEEKDATA, debuggee.pid(), there + at, nullptr);
        ASSERT_EQ(errno, 0) << at;
        unsigned char seen[sizeof word];
        std::memcpy(seen, &word, sizeof word);
        EXPECT_TRUE(holds(seen, 1, at)) << at;
    }
    EXPECT_EQ(ptrace(PTRACE_POKEDATA, debuggee.pid(), there + huge_size - 3, 0x1122334455667788),
              0);
    // /proc/PID/mem goes the same way, over page and chunk boundaries.
    const UniqueFd mem(
        open(("/proc/" + std::to_string(debuggee.pid()) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(mem.valid());
    std::vector<unsigned char> seen(5 * page_size);
    ASSERT_EQ(pread(mem.get(), seen.data(), seen.size(),
                    static_cast<off_t>(reinterpret_cast<std::uintptr_t>(there) + huge_size + 77)),
              static_cast<ssize_t>(seen.size()));
    EXPECT_TRUE(holds(seen, 1, huge_size + 77));
    // Past its end there is nothing to see.
    unsigned char beyond = 0;
    const ssize_t got =
        pread(mem.get(), &beyond, 1,
              static_cast<off_t>(reinterpret_cast<std::uintptr_t>(there) + 2 * huge_size));
    EXPECT_LE(got, 1);
    ASSERT_EQ(ptrace(PTRACE_DETACH, debuggee.pid(), nullptr, nullptr), 0);
    debuggee.channel().send(0);
    EXPECT_EQ(debuggee.wait(), 0);
}

TEST_P(Access, a_debugger_reads_but_does_not_write_a_read_only_mapping) {
    const Node node;
    Child debuggee([&](Channel& channel) {
        const Region region(node, huge_size, kind());
        fill(region.bytes(), 1);
        mprotect(region.data(), region.size(), PROT_READ);
        channel.send(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(region.data())));
        (void)channel.receive();
        require(holds(region.bytes(), 1), "a read-only mapping was written");
    });
    auto* there = reinterpret_cast<unsigned char*>(debuggee.channel().receive());
    ASSERT_EQ(ptrace(PTRACE_ATTACH, debuggee.pid(), nullptr, nullptr), 0);
    int status = 0;
    ASSERT_EQ(waitpid(debuggee.pid(), &status, 0), debuggee.pid());
    errno = 0;
    const long word = ptrace(PTRACE_PEEKDATA, debuggee.pid(), there + page_size, nullptr);
    EXPECT_EQ(errno, 0);
    unsigned char seen[sizeof word];
    std::memcpy(seen, &word, sizeof word);
    EXPECT_TRUE(holds(seen, 1, page_size));
    EXPECT_EQ(ptrace(PTRACE_POKEDATA, debuggee.pid(), there + page_size, 0L), -1)
        << "writes would go round the protection of shared memory";
    ASSERT_EQ(ptrace(PTRACE_DETACH, debuggee.pid(), nullptr, nullptr), 0);
    debuggee.channel().send(0);
    EXPECT_EQ(debuggee.wait(), 0);
}

TEST_P(Access, locks_shared_between_processes_are_refused_not_broken) {
    // A futex that other processes could share needs the page's identity, which ours lack.
    const Node node;
    const Region region(node, page_size, kind());
    EXPECT_EQ(syscall(SYS_futex, region.data(), 1 /* FUTEX_WAKE */, 1, nullptr, nullptr, 0), -1);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(syscall(SYS_futex, region.data(), 1 | 128 /* private */, 1, nullptr, nullptr, 0), 0);
}
