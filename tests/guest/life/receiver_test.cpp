// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A receiver is killed while a peer writes to its memory. The memory goes to others only
// when the HCA cannot write to it any more.
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "../driver/kinds.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/killed.hpp"
#include "support/node.hpp"
#include "support/rdma.hpp"

using namespace support;

namespace {

constexpr std::size_t region_bytes = 16 * MiB;
constexpr std::size_t message_bytes = 256 * KiB;
constexpr int under_way = 24;
constexpr unsigned char from_the_wire = 0xD5;
constexpr unsigned char refilled = 0x2A;

/// Frames of all regions that are out.
std::set<std::uint64_t> frames_of_regions() {
    std::set<std::uint64_t> frames;
    std::istringstream lines(read_text("/sys/kernel/debug/hcamem/frames"));
    std::uint64_t region = 0;
    std::string frame;
    std::uint64_t pages = 0;
    std::string zone;
    while (lines >> region >> frame >> pages >> zone) {
        for (std::uint64_t i = 0; i < pages; ++i) {
            frames.insert(std::stoull(frame, nullptr, 16) + i);
        }
    }
    return frames;
}

/// Frames behind ordinary memory.
void add_frames_of(std::span<const unsigned char> memory, std::set<std::uint64_t>& frames) {
    const UniqueFd pagemap(must(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), "pagemap"));
    std::vector<std::uint64_t> entries(memory.size() / page_size);
    const auto first = reinterpret_cast<std::uintptr_t>(memory.data()) / page_size;
    must(pread(pagemap.get(), entries.data(), entries.size() * 8, static_cast<off_t>(first * 8)),
         "pagemap");
    for (const std::uint64_t entry : entries) {
        if ((entry & (std::uint64_t{1} << 63)) != 0) {
            frames.insert(entry & ((std::uint64_t{1} << 55) - 1));
        }
    }
}

/// Registers memory for its peer and waits to be killed.
void receive(hcamem_mapping mapping, Channel& channel) {
    const Node node;
    const Context context;
    const Pd pd(context);
    const Region region(node, region_bytes, {mapping, HCAMEM_FORK_POLICY_ZERO});
    std::memset(region.data(), 1, region.size());
    const Mr mr = Mr::of_region(pd, node, region.data(), region.size());
    const Endpoint endpoint(context, pd);
    endpoint.connect(static_cast<std::uint32_t>(channel.receive()), Endpoint::Fate::lives);
    channel.send(endpoint.number());
    channel.send(mr.rkey());
    channel.send(reinterpret_cast<std::intptr_t>(region.data()));
    (void)channel.receive();
}

/// Memory that is filled as soon as it is there, and must stay as it is.
class Refill {
  public:
    /// As regions, large ones and single pages, and as ordinary memory.
    void take(const Node& node) {
        take_region(node, region_bytes / 2);
        // Single pages that came free wait for requests on the CPU that freed them.
        for (unsigned cpu = 0; cpu < std::thread::hardware_concurrency(); ++cpu) {
            run_on(cpu);
            for (int i = 0; i < 200; ++i) {
                take_region(node, page_size);
            }
        }
        void* ordinary =
            mmap(nullptr, region_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        require(ordinary != MAP_FAILED, "mmap");
        ordinary_.emplace_back(static_cast<unsigned char*>(ordinary), region_bytes);
        add(ordinary_.back());
    }
    [[nodiscard]] std::uint64_t bytes_of_regions() const { return bytes_of_regions_; }
    [[nodiscard]] std::set<std::uint64_t> frames() const {
        std::set<std::uint64_t> frames = frames_of_regions();
        for (const std::span<unsigned char> memory : ordinary_) {
            add_frames_of(memory, frames);
        }
        return frames;
    }
    void check() const {
        for (const std::span<unsigned char> memory : all_) {
            require(all_equal(memory, refilled), "a foreign byte in refilled memory");
        }
    }

  private:
    static void run_on(unsigned cpu) {
        cpu_set_t only;
        CPU_ZERO(&only);
        CPU_SET(cpu, &only);
        must(sched_setaffinity(0, sizeof only, &only), "sched_setaffinity");
    }
    void take_region(const Node& node, std::size_t size) {
        regions_.emplace_back(node, size);
        add(regions_.back().bytes());
        bytes_of_regions_ += size;
    }
    void add(std::span<unsigned char> memory) {
        std::memset(memory.data(), refilled, memory.size());
        all_.push_back(memory);
    }
    std::vector<Region> regions_;
    std::vector<std::span<unsigned char>> ordinary_;
    std::vector<std::span<unsigned char>> all_;
    std::uint64_t bytes_of_regions_ = 0;
};

/// Takes the memory that comes free, while it does and after, and looks at it until told to
/// stop. Answers with how many of the frames it got were the receiver's.
void refill(const std::set<std::uint64_t>& frames_before, Channel& channel) {
    const Node node;
    Refill memory;
    channel.send(0);
    while (node.total() >= region_bytes) {
    }
    memory.take(node);
    require(eventually([&] { return node.total() == memory.bytes_of_regions(); }),
            "all of the receiver's memory comes free");
    memory.take(node);
    std::int64_t same = 0;
    for (const std::uint64_t frame : memory.frames()) {
        same += frames_before.contains(frame) ? 1 : 0;
    }
    channel.send(same);
    pollfd stop{channel.fd(), POLLIN, 0};
    do {
        memory.check();
    } while (poll(&stop, 1, 20) == 0);
    memory.check();
}

class Receiver : public MappingModes {
  protected:
    void SetUp() override {
        if (GetParam() == HCAMEM_MAPPING_HUGE && !rxe_imports_dma_bufs() && kernel() != "6.1") {
            GTEST_SKIP() << "stock soft-RoCE has no way to register a huge mapping on " << kernel();
        }
        ASSERT_TRUE(eventually([] { return Node().total() == 0; }));
    }
    void TearDown() override {
        EXPECT_TRUE(eventually([] { return Node().total() == 0; })) << Node().total();
    }
};

INSTANTIATE_TEST_SUITE_P(, Receiver, both_mappings, mapping_name);

} // namespace

TEST_P(Receiver, R06_its_memory_is_nobody_elses_while_writes_may_arrive) {
    std::int64_t used_again = 0;
    for (int round = 0; round < 3; ++round) {
        const Context context;
        const Pd pd(context);
        // Its own memory, so that the driver's is all the receiver's.
        std::vector<unsigned char> source(message_bytes, from_the_wire);
        const Mr source_mr = Mr::user_pages(pd, source.data(), source.size());
        const Endpoint sender(context, pd);
        Child receiver([](Channel& channel) { receive(GetParam(), channel); });
        receiver.channel().send(sender.number());
        sender.connect(static_cast<std::uint32_t>(receiver.channel().receive()),
                       Endpoint::Fate::dies);
        const auto rkey = static_cast<std::uint32_t>(receiver.channel().receive());
        const auto base = static_cast<std::uintptr_t>(receiver.channel().receive());

        const std::set<std::uint64_t> frames = frames_of_regions();
        ASSERT_EQ(frames.size(), region_bytes / page_size);
        Child refiller([&](Channel& channel) { refill(frames, channel); });
        (void)refiller.channel().receive();

        std::size_t sent = 0;
        const auto write_next = [&] {
            const auto* to =
                reinterpret_cast<const void*>(base + sent++ * message_bytes % region_bytes);
            sender.post_write({source.data(), message_bytes, &source_mr},
                              {to, message_bytes, 0, rkey});
        };
        for (int i = 0; i < under_way; ++i) {
            write_next();
        }
        for (int i = 0; i < 8 + round; ++i) {
            ASSERT_EQ(sender.completion().status, IBV_WC_SUCCESS);
            write_next();
        }
        receiver.kill_now();
        // The stream goes on until the HCA gives up.
        ibv_wc_status status = IBV_WC_SUCCESS;
        while (status == IBV_WC_SUCCESS) {
            status = sender.completion().status;
            if (status == IBV_WC_SUCCESS) {
                write_next();
            }
        }
        EXPECT_TRUE(status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_REM_ACCESS_ERR ||
                    status == IBV_WC_REM_OP_ERR || status == IBV_WC_REM_INV_REQ_ERR)
            << ibv_wc_status_str(status);
        EXPECT_TRUE(was_killed(receiver));
        used_again += refiller.channel().receive();
        refiller.channel().send(0);
        const int refill_status = refiller.wait();
        EXPECT_TRUE(WIFEXITED(refill_status) && WEXITSTATUS(refill_status) == 0);
        ASSERT_TRUE(eventually([] { return Node().total() == 0; }));
    }
    EXPECT_GT(used_again, 0) << "none of the receiver's memory came to others: nothing was shown";
    std::printf("frames of the receivers in others' memory: %lld\n",
                static_cast<long long>(used_again));
}
