// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Who may hold how much: RLIMIT_MEMLOCK by user, CAP_IPC_LOCK, the module's caps.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstring>
#include <vector>

#include "kinds.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"
#include "support/rdma.hpp"

using namespace support;

namespace {

class Limits : public MappingModes {
  protected:
    void SetUp() override { before_ = watch_.total(); }
    void TearDown() override {
        EXPECT_TRUE(eventually([&] { return watch_.total() == before_; }));
    }

    /// errno of a request in a child with this identity, 0 if it was granted.
    static std::int64_t attempt_as(const Identity& identity, std::size_t size) {
        return value_from_child(identity, [&] { return Region::attempt(Node(), size, kind()); });
    }

    const Node watch_;
    std::uint64_t before_ = 0;
};

INSTANTIATE_TEST_SUITE_P(, Limits, both_mappings, mapping_name);

constexpr rlim_t limit = 16 * MiB;

} // namespace

TEST_P(Limits, R03_a_user_gets_its_limit_to_the_byte_and_no_more) {
    const Identity user{fresh_user(), limit, {}};
    EXPECT_EQ(attempt_as(user, limit), 0);
    EXPECT_EQ(attempt_as(user, limit + 1), EAGAIN);
    EXPECT_EQ(attempt_as(user, limit + page_size), EAGAIN);
    const Identity nothing{fresh_user(), rlim_t{0}, {}};
    EXPECT_EQ(attempt_as(nothing, 1), EAGAIN) << "the right to open the node is not enough";
}

TEST_P(Limits, R03_a_refusal_allocates_nothing) {
    const Identity user{fresh_user(), limit, {}};
    const std::uint64_t available = meminfo("MemAvailable");
    EXPECT_TRUE(succeeds_in_child(user, [&](Channel&) {
        const Node node;
        for (int i = 0; i < 50; ++i) {
            require(Region::attempt(node, 512 * MiB, kind()) == EAGAIN, "refused");
            require(node.info().user_bytes == 0, "charged although refused");
            require(node.total() == before_, "held although refused");
        }
        // The refusals did not use up the limit either.
        require(Region::attempt(node, limit, kind()) == 0, "the whole limit is there still");
    }));
    EXPECT_TRUE(eventually([&] { return meminfo("MemAvailable") + 64 * MiB > available; }));
}

TEST_P(Limits, R03_bare_mmap_is_limited_the_same) {
    const Identity user{fresh_user(), limit, {}};
    EXPECT_TRUE(succeeds_in_child(user, [&](Channel&) {
        const Node node;
        void* mapped =
            mmap(nullptr, limit + page_size, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(), 0);
        require(mapped == MAP_FAILED && errno == EAGAIN, "over the limit");
        mapped = mmap(nullptr, limit, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd(), 0);
        require(mapped != MAP_FAILED, "at the limit");
    }));
}

TEST_P(Limits, R03_cap_ipc_lock_lifts_the_limit) {
    const Identity capable{fresh_user(), limit, true};
    EXPECT_EQ(attempt_as(capable, 2 * limit), 0);
    const Identity root_without{{}, limit, false};
    EXPECT_EQ(attempt_as(root_without, 2 * limit), EAGAIN) << "root is nobody without it";
    const Identity root{{}, limit, {}};
    EXPECT_EQ(attempt_as(root, 2 * limit), 0);
}

TEST_P(Limits, R03_what_a_capable_process_holds_counts_for_its_user) {
    const uid_t uid = fresh_user();
    Child holder({uid, limit, true}, [&](Channel& channel) {
        const Region region(Node(), limit, kind());
        channel.send(0);
        (void)channel.receive();
    });
    (void)holder.channel().receive();
    EXPECT_EQ(attempt_as({uid, limit, {}}, page_size), EAGAIN);
    EXPECT_EQ(attempt_as({uid, limit, true}, page_size), 0);
    EXPECT_EQ(attempt_as({fresh_user(), limit, {}}, page_size), 0) << "another user is free";
}

TEST_P(Limits, R03_many_processes_of_one_user_share_the_limit) {
    const Identity user{fresh_user(), limit, {}};
    constexpr std::size_t part = 3 * MiB;
    std::vector<Child> children;
    unsigned granted = 0;
    for (int i = 0; i < 8; ++i) {
        children.emplace_back(user, [&](Channel& channel) {
            std::vector<Region> held;
            const int error = Region::attempt(Node(), part, kind());
            if (error == 0) {
                held.emplace_back(Node(), part, kind());
            }
            channel.send(error);
            (void)channel.receive();
        });
        const std::int64_t error = children.back().channel().receive();
        granted += error == 0 ? 1 : 0;
        EXPECT_TRUE(error == 0 || error == EAGAIN) << error;
    }
    EXPECT_EQ(granted, limit / part);
    EXPECT_EQ(watch_.total() - before_, granted * part);
    children.front().channel().send(0);
    children.front().wait();
    EXPECT_EQ(attempt_as(user, part), 0) << "what one gave back, another may have";
}

TEST_P(Limits, R03_racing_processes_of_one_user_share_the_limit) {
    const Identity user{fresh_user(), limit, {}};
    std::vector<Child> children;
    for (int i = 0; i < 4; ++i) {
        children.emplace_back(user, [&](Channel& channel) {
            const Node node;
            (void)channel.receive();
            for (int round = 0; round < 60; ++round) {
                const int error = Region::attempt(node, 5 * MiB, kind());
                require(error == 0 || error == EAGAIN, "another errno");
                require(node.info().user_bytes <= limit, "the user holds more than its limit");
            }
        });
    }
    for (Child& child : children) {
        child.channel().send(0);
    }
    for (Child& child : children) {
        EXPECT_EQ(child.wait(), 0);
    }
    EXPECT_EQ(attempt_as(user, limit), 0) << "no charge is left behind";
}

TEST_P(Limits, R03_a_user_namespace_does_not_help) {
    const Identity user{fresh_user(), limit, {}};
    EXPECT_TRUE(succeeds_in_child(user, [&](Channel&) {
        must(unshare(CLONE_NEWUSER), "unshare(CLONE_NEWUSER)");
        // Every capability, but only over what the namespace owns.
        require(Region::attempt(Node(), limit + page_size, kind()) == EAGAIN, "over the limit");
        const rlimit more{2 * limit, 2 * limit};
        require(setrlimit(RLIMIT_MEMLOCK, &more) != 0, "the namespace's root raised the limit");
        require(Region::attempt(Node(), limit, kind()) == 0, "at the limit");
    }));
}

TEST_P(Limits, R03_huge_counts_with_what_ibv_reg_mr_has_pinned) {
    // Both end in mm->pinned_vm or user->locked_vm against the same limit.
    const Identity user{fresh_user(), limit, {}};
    EXPECT_TRUE(succeeds_in_child(user, [&](Channel&) {
        const Context context;
        const Pd pd(context);
        const Node node;
        const std::size_t part = limit / 10 * 6 / page_size * page_size;
        std::vector<unsigned char> heap(part + page_size);
        const Mr mr = Mr::user_pages(pd, heap.data(), part);
        const int error = Region::attempt(node, part, kind());
        if (GetParam() == HCAMEM_MAPPING_HUGE) {
            require(error == EAGAIN, "huge memory passed the limit beside a registration");
        } else {
            require(error == 0, "pages are charged once, with the registration of others");
        }
    }));
}

TEST(LimitsOfPages, R03_registering_charges_no_second_time) {
    const Identity user{fresh_user(), limit, {}};
    EXPECT_TRUE(succeeds_in_child(user, [&](Channel&) {
        const Context context;
        const Pd pd(context);
        const Node node;
        const Region region(node, limit / 10 * 6);
        const Mr mr = Mr::user_pages(pd, region.data(), region.size());
        require(mr.lkey() != 0, "registered");
    }));
}

TEST_P(Limits, R03_mlock_and_hcamem_do_not_lend_each_other) {
    // locked_vm of the mm (mlock) and of the user (us) are two counters; munlock() of our
    // memory must not give anything back.
    const Identity user{fresh_user(), limit, {}};
    EXPECT_TRUE(succeeds_in_child(user, [&](Channel&) {
        const Node node;
        const Region region(node, limit, kind());
        munlock(region.data(), region.size());
        munlockall();
        require(Region::attempt(node, page_size, kind()) == EAGAIN, "munlock() gave credit");
    }));
}

TEST_P(Limits, R03_the_cap_for_all_users) {
    const ModuleParameter cap("max_bytes", before_ + 6 * MiB);
    EXPECT_EQ(Region::attempt(watch_, 6 * MiB + 1, kind()), EDQUOT);
    const Region region(watch_, 4 * MiB, kind());
    EXPECT_EQ(Region::attempt(watch_, 2 * MiB + page_size, kind()), EDQUOT);
    EXPECT_EQ(Region::attempt(watch_, 2 * MiB, kind()), 0);
    EXPECT_EQ(attempt_as({fresh_user(), limit, {}}, 3 * MiB), EDQUOT) << "other users too";
    EXPECT_EQ(attempt_as({fresh_user(), limit, true}, 3 * MiB), EDQUOT)
        << "CAP_IPC_LOCK is no way round";
    EXPECT_EQ(watch_.info().max_bytes, before_ + 6 * MiB);
}

TEST_P(Limits, R03_the_cap_for_each_user) {
    const ModuleParameter cap("max_bytes_per_user", 6 * MiB);
    const uid_t uid = fresh_user();
    EXPECT_EQ(attempt_as({uid, limit, {}}, 6 * MiB), 0);
    EXPECT_EQ(attempt_as({uid, limit, {}}, 6 * MiB + 1), EDQUOT);
    EXPECT_EQ(attempt_as({uid, limit, true}, 6 * MiB + 1), EDQUOT);
    Child holder({uid, limit, {}}, [&](Channel& channel) {
        const Region region(Node(), 5 * MiB, kind());
        channel.send(0);
        (void)channel.receive();
    });
    (void)holder.channel().receive();
    EXPECT_EQ(attempt_as({uid, limit, {}}, 2 * MiB), EDQUOT) << "over all its processes";
    EXPECT_EQ(attempt_as({fresh_user(), limit, {}}, 6 * MiB), 0);
}

TEST_P(Limits, R03_the_reserve_stays_available) {
    const std::uint64_t available = meminfo("MemAvailable");
    {
        const ModuleParameter reserve("reserve_bytes", available);
        EXPECT_EQ(Region::attempt(watch_, 64 * MiB, kind()), ENOMEM);
    }
    const ModuleParameter reserve("reserve_bytes", available - 128 * MiB);
    EXPECT_EQ(Region::attempt(watch_, 512 * MiB, kind()), ENOMEM);
    EXPECT_EQ(Region::attempt(watch_, MiB, kind()), 0);
    EXPECT_EQ(watch_.total(), before_);
}
