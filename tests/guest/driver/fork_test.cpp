// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What a forked child finds, and that nothing of it reaches the parent.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

#include "kinds.hpp"
#include "support/cgroup.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

/// Both mapping modes, by fork() and by the raw system call.
class Fork : public testing::TestWithParam<std::tuple<hcamem_mapping, Spawn>> {
  protected:
    static RegionKind kind(hcamem_fork fork = HCAMEM_FORK_POLICY_ZERO) {
        return {std::get<0>(GetParam()), fork};
    }
    static Spawn spawn() { return std::get<1>(GetParam()); }
    static bool in_child(const Child::Body& body) { return succeeds_in_child({}, body, spawn()); }

    const std::size_t size_ = huge_size + 3 * page_size;
};

INSTANTIATE_TEST_SUITE_P(, Fork,
                         testing::Combine(both_mappings,
                                          testing::Values(Spawn::fork, Spawn::raw_clone)),
                         [](const auto& info) {
                             return std::string(to_string(std::get<0>(info.param))) + "_" +
                                    to_string(std::get<1>(info.param));
                         });

/// Whether anything is mapped at the address.
bool mapped(const void* address) {
    return !maps_line(address).empty();
}

/// What the child does with an inherited region: looks, writes, changes it, gives it back.
void use_as_child(std::span<unsigned char> bytes) {
    require(all_equal(bytes, 0), "the child sees something else than zeros");
    std::fill(bytes.begin(), bytes.end(), static_cast<unsigned char>(0xee));
    require(all_equal(bytes, 0xee), "the child's memory does not keep what it writes");
    must(mprotect(bytes.data(), page_size, PROT_READ), "mprotect");
    must(madvise(bytes.data(), bytes.size(), MADV_DONTNEED), "MADV_DONTNEED");
    require(all_equal(bytes, 0), "the child sees something else than zeros after DONTNEED");
    must(munmap(bytes.data() + page_size, page_size), "munmap of a page");
    must(munmap(bytes.data(), bytes.size()), "munmap");
}

/// A process that takes much memory, fills it and, when told to, checks it.
class Refiller {
  public:
    explicit Refiller(std::size_t size)
        : child_([size](Channel& channel) {
              void* mine =
                  mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              require(mine != MAP_FAILED, "memory for the refill");
              const std::span<unsigned char> bytes(static_cast<unsigned char*>(mine), size);
              std::memset(bytes.data(), 0xdb, size);
              channel.send(0);
              (void)channel.receive();
              require(all_equal(bytes, 0xdb), "somebody wrote into another process's memory");
          }) {
        (void)child_.channel().receive();
    }
    bool untouched() {
        child_.channel().send(0);
        return child_.wait() == 0;
    }

  private:
    Child child_;
};

struct Advice {
    int value;
    const char* name;
};
constexpr Advice fork_advice[] = {{MADV_KEEPONFORK, "KEEPONFORK"},
                                  {MADV_DOFORK, "DOFORK"},
                                  {MADV_DONTFORK, "DONTFORK"},
                                  {MADV_WIPEONFORK, "WIPEONFORK"}};

} // namespace

TEST_P(Fork, R12_child_sees_zeros_and_cannot_write_the_parents_buffer) {
    const Node node;
    const Region region(node, size_, kind());
    fill(region.bytes(), 1);
    EXPECT_TRUE(in_child([&](Channel&) { use_as_child(region.bytes()); }));
    EXPECT_TRUE(holds(region.bytes(), 1));
}

TEST_P(Fork, R12_child_of_a_region_that_nobody_touched) {
    const Node node;
    const Region region(node, size_, kind());
    EXPECT_TRUE(in_child([&](Channel&) { use_as_child(region.bytes()); }));
    EXPECT_TRUE(all_equal(region.bytes(), 0));
}

TEST_P(Fork, R12_bare_mmap_too) {
    const Node node;
    void* mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    const std::span<unsigned char> bytes(static_cast<unsigned char*>(mapped), size_);
    fill(bytes, 1);
    EXPECT_TRUE(in_child([&](Channel&) { use_as_child(bytes); }));
    EXPECT_TRUE(holds(bytes, 1));
    munmap(mapped, size_);
}

TEST_P(Fork, R12_part_of_a_region) {
    const Node node;
    const Region region(node, 2 * size_, kind());
    fill(region.bytes(), 1);
    munmap(region.data() + page_size, 2 * page_size);
    mprotect(region.data() + size_, page_size, PROT_READ);
    EXPECT_TRUE(in_child([&](Channel&) {
        require(all_equal({region.data(), page_size}, 0), "before the hole");
        require(!mapped(region.data() + page_size), "the hole");
        require(all_equal({region.data() + 3 * page_size, size_}, 0), "after the hole");
    }));
    EXPECT_TRUE(holds({region.data(), page_size}, 1));
    const std::size_t rest = 3 * page_size;
    EXPECT_TRUE(holds({region.data() + rest, region.size() - rest}, 1, rest));
}

TEST_P(Fork, R12_child_memory_is_ordinary_and_its_own) {
    const Node node;
    const std::uint64_t before = node.total();
    const Region region(node, size_, kind());
    fill(region.bytes(), 1);
    const MemoryCgroup group;
    EXPECT_TRUE(in_child([&](Channel& channel) {
        (void)channel;
        group.enter();
        require(smaps(region.data(), "Anonymous") == 0, "nothing is allocated before a touch");
        const std::uint64_t charged = group.current();
        std::memset(region.data(), 1, size_);
        require(smaps(region.data(), "Anonymous") >= size_ - page_size, "smaps: not anonymous");
        // The counter lags by a batch per CPU.
        require(group.current() + MiB >= charged + size_, "the cgroup does not pay for it");
        require(node.total() - before == size_, "the module pays for it");
    }));
    EXPECT_TRUE(holds(region.bytes(), 1));
}

TEST_P(Fork, R12_grandchildren_see_zeros) {
    const Node node;
    const Region region(node, size_, kind());
    fill(region.bytes(), 1);
    EXPECT_TRUE(in_child([&](Channel&) {
        require(succeeds_in_child(
                    {}, [&](Channel&) { use_as_child(region.bytes()); }, spawn()),
                "grandchild before the child wrote");
        std::memset(region.data(), 0xc1, size_);
        require(succeeds_in_child(
                    {}, [&](Channel&) { use_as_child(region.bytes()); }, spawn()),
                "grandchild after the child wrote");
        require(all_equal(region.bytes(), 0xc1), "the grandchild wrote into the child");
    }));
    EXPECT_TRUE(holds(region.bytes(), 1));
}

// The naive ways to wipe are switched off by madvise(); libibverbs itself calls DOFORK.
TEST_P(Fork, R12_whatever_madvise_said_in_every_order) {
    const Node node;
    const std::size_t size = 4 * page_size;
    std::vector<std::size_t> order{0, 1, 2, 3};
    do {
        for (std::size_t used = 1; used <= order.size(); ++used) {
            const Region region(node, size, kind());
            fill(region.bytes(), 1);
            std::string said;
            for (std::size_t i = 0; i < used; ++i) {
                const Advice& advice = fork_advice[order[i]];
                const int result = madvise(region.data(), size, advice.value);
                said += std::string(advice.name) + (result == 0 ? " " : "(refused) ");
            }
            ASSERT_TRUE(in_child([&](Channel&) {
                if (mapped(region.data())) {
                    use_as_child(region.bytes());
                }
            })) << said;
            ASSERT_TRUE(holds(region.bytes(), 1)) << said;
        }
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(Fork, R12_child_finds_zeros_or_nothing_after_each_madvise_of_a_large_region) {
    const Node node;
    for (const Advice& advice : fork_advice) {
        const Region region(node, size_, kind());
        fill(region.bytes(), 1);
        const bool taken = madvise(region.data(), size_, advice.value) == 0;
        EXPECT_TRUE(in_child([&](Channel&) {
            if (mapped(region.data())) {
                use_as_child(region.bytes());
            }
        })) << advice.name;
        EXPECT_TRUE(holds(region.bytes(), 1)) << advice.name;
        if (taken && advice.value == MADV_DONTFORK) {
            EXPECT_EQ(madvise(region.data(), size_, MADV_DOFORK), 0);
            EXPECT_TRUE(in_child([&](Channel&) { use_as_child(region.bytes()); }));
        }
    }
}

// A child that kept the parent's page table entries would now look into, or write into,
// memory of a third process.
TEST_P(Fork, R12_child_never_reaches_pages_that_the_parent_gave_back) {
    const Node node;
    for (const int advice : {0, MADV_KEEPONFORK, MADV_DOFORK}) {
        const std::uint64_t before = node.total();
        Region region(node, 4 * huge_size, kind());
        unsigned char* address = region.data();
        const std::size_t size = region.size();
        fill(region.bytes(), 1);
        if (advice != 0) {
            madvise(address, size, advice);
        }
        Child child(
            {},
            [&](Channel& channel) {
                channel.send(0);
                (void)channel.receive();
                const std::span<unsigned char> bytes(address, size);
                require(all_equal(bytes, 0), "the child sees another process's memory");
                std::memset(address, 0xee, size);
                channel.send(0);
                (void)channel.receive();
                require(all_equal(bytes, 0xee), "another process wrote the child's memory");
            },
            spawn());
        (void)child.channel().receive();
        region.unmap();
        ASSERT_TRUE(eventually([&] { return node.total() == before; }));
        Refiller refill(64 * MiB);
        child.channel().send(0);
        (void)child.channel().receive();
        EXPECT_TRUE(refill.untouched());
        child.channel().send(0);
        EXPECT_EQ(child.wait(), 0);
    }
}

TEST_P(Fork, R12_child_outlives_the_parents_mapping) {
    const Node node;
    const std::uint64_t before = node.total();
    auto region = std::make_unique<Region>(node, size_, kind());
    fill(region->bytes(), 1);
    unsigned char* address = region->data();
    Child child(
        {},
        [&](Channel& channel) {
            std::memset(address, 0x11, size_);
            channel.send(0);
            (void)channel.receive();
            require(all_equal({address, size_}, 0x11), "the child's memory changed");
            must(munmap(address, size_), "munmap");
        },
        spawn());
    (void)child.channel().receive();
    region.reset();
    EXPECT_TRUE(eventually([&] { return node.total() == before; }))
        << "a child of a zero region holds nothing";
    child.channel().send(0);
    EXPECT_EQ(child.wait(), 0);
}

TEST_P(Fork, dontcopy_leaves_a_hole_in_the_child) {
    const Node node;
    const Region region(node, size_, kind(HCAMEM_FORK_POLICY_DONTCOPY));
    fill(region.bytes(), 1);
    EXPECT_TRUE(in_child([&](Channel&) {
        require(!mapped(region.data()), "something is mapped: " + maps_line(region.data()));
        require(!mapped(region.data() + size_ - 1), "something is mapped at the end");
    }));
    Child toucher(
        {},
        [&](Channel&) {
            signal(SIGSEGV, SIG_DFL);
            *static_cast<volatile unsigned char*>(region.data()) = 1;
        },
        spawn());
    const int status = toucher.wait();
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGSEGV);
    EXPECT_TRUE(holds(region.bytes(), 1));
}

TEST_P(Fork, dontcopy_keeps_its_secret_whatever_madvise_said) {
    const Node node;
    const std::size_t size = 4 * page_size;
    for (const Advice& first : fork_advice) {
        for (const Advice& second : fork_advice) {
            const Region region(node, size, kind(HCAMEM_FORK_POLICY_DONTCOPY));
            fill(region.bytes(), 1);
            madvise(region.data(), size, first.value);
            madvise(region.data(), size, second.value);
            EXPECT_TRUE(in_child([&](Channel&) {
                if (mapped(region.data())) {
                    use_as_child(region.bytes());
                }
            })) << first.name
                << ' ' << second.name;
            EXPECT_TRUE(holds(region.bytes(), 1)) << first.name << ' ' << second.name;
        }
    }
}

TEST_P(Fork, share_gives_the_child_the_same_memory) {
    const Node node;
    const std::uint64_t before = node.total();
    auto region = std::make_unique<Region>(node, size_, kind(HCAMEM_FORK_POLICY_SHARE));
    unsigned char* address = region->data();
    fill({address, size_ / 2}, 1);
    Child child(
        {},
        [&](Channel& channel) {
            require(holds({address, size_ / 2}, 1), "the child does not see the parent's bytes");
            address[size_ - 1] = 0x42;
            channel.send(0);
            (void)channel.receive();
            require(address[0] == 0x43, "the child does not see what the parent wrote later");
            channel.send(0);
            (void)channel.receive();
            require(address[size_ - 1] == 0x42, "the memory went with the parent's mapping");
        },
        spawn());
    (void)child.channel().receive();
    EXPECT_EQ(address[size_ - 1], 0x42);
    EXPECT_EQ(node.total() - before, size_) << "shared, so charged once";
    address[0] = 0x43;
    child.channel().send(0);
    (void)child.channel().receive();
    region.reset();
    EXPECT_EQ(node.total() - before, size_) << "the child still holds it";
    child.channel().send(0);
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

TEST_P(Fork, share_reaches_grandchildren_and_ends_with_the_last) {
    const Node node;
    const std::uint64_t before = node.total();
    {
        const Region region(node, size_, kind(HCAMEM_FORK_POLICY_SHARE));
        EXPECT_TRUE(in_child([&](Channel&) {
            require(succeeds_in_child(
                        {}, [&](Channel&) { region.data()[5] = 9; }, spawn()),
                    "grandchild");
            require(region.data()[5] == 9, "the grandchild wrote elsewhere");
        }));
        EXPECT_EQ(region.data()[5], 9);
        EXPECT_EQ(node.total() - before, size_);
    }
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}

TEST(Vfork, R12_child_runs_a_program_and_the_parent_keeps_its_memory) {
    const Node node;
    for (const hcamem_mapping mapping : {HCAMEM_MAPPING_HUGE, HCAMEM_MAPPING_PAGES}) {
        const Region region(node, huge_size, {mapping, HCAMEM_FORK_POLICY_ZERO});
        fill(region.bytes(), 1);
        const pid_t pid = vfork();
        if (pid == 0) {
            execl("/bin/true", "true", nullptr);
            _exit(127);
        }
        int status = -1;
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        EXPECT_EQ(status, 0);
        EXPECT_TRUE(holds(region.bytes(), 1));
    }
}

TEST(ForkMany, many_regions_and_many_children) {
    const Node node;
    const std::uint64_t before = node.total();
    {
        std::vector<Region> regions;
        for (unsigned i = 0; i < 24; ++i) {
            regions.emplace_back(node, (i + 1) * 3 * page_size,
                                 RegionKind{i % 2 == 0 ? HCAMEM_MAPPING_HUGE : HCAMEM_MAPPING_PAGES,
                                            static_cast<hcamem_fork>(i % 3)});
            fill(regions.back().bytes(), i);
        }
        std::vector<Child> children;
        for (unsigned c = 0; c < 6; ++c) {
            children.emplace_back([&](Channel&) {
                for (unsigned i = 0; i < regions.size(); ++i) {
                    const auto bytes = regions[i].bytes();
                    switch (i % 3) {
                    case HCAMEM_FORK_POLICY_ZERO:
                        use_as_child(bytes);
                        break;
                    case HCAMEM_FORK_POLICY_DONTCOPY:
                        require(!mapped(bytes.data()), "a hole");
                        break;
                    default:
                        require(holds(bytes, i), "shared");
                        break;
                    }
                }
            });
        }
        for (Child& child : children) {
            EXPECT_EQ(child.wait(), 0);
        }
        for (unsigned i = 0; i < regions.size(); ++i) {
            EXPECT_TRUE(holds(regions[i].bytes(), i)) << i;
        }
    }
    EXPECT_TRUE(eventually([&] { return node.total() == before; }));
}
