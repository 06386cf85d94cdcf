// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Two CPUs meet at an edge of the driver: the last references on a region, pages that others
// keep, and the accounts. Nothing is given back too early, and nothing stays behind.
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "race.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"

using namespace support;

namespace {

class RaceOfRelease : public NothingHeld {};
INSTANTIATE_TEST_SUITE_P(, RaceOfRelease, both_mappings, mapping_name);

/// A pipe that can hold the first page of a region.
class PipeOfPage {
  public:
    PipeOfPage() {
        int ends[2];
        must(pipe2(ends, O_CLOEXEC), "pipe");
        reader_ = UniqueFd(ends[0]);
        writer_ = UniqueFd(ends[1]);
    }
    explicit PipeOfPage(const Region& region) : PipeOfPage() { take(region); }
    void take(const Region& region) const {
        iovec part{region.data(), page_size};
        must(vmsplice(writer_.get(), &part, 1, 0), "vmsplice");
    }
    void drain() {
        reader_.reset();
        writer_.reset();
    }

  private:
    UniqueFd reader_;
    UniqueFd writer_;
};

/// A process whose requests a limit refuses, for which the driver looks for pages that came
/// free. Who is held may have locked the test's own address space.
class Refused {
  public:
    Refused()
        : child_({fresh_user(), rlim_t{page_size}, {}}, [](Channel& channel) {
              for (;;) {
                  (void)channel.receive();
                  channel.send(Region::attempt(Node(), 2 * page_size));
              }
          }) {}
    void try_again() {
        child_.channel().send(0);
        require(child_.channel().receive() == EAGAIN, "over the limit");
    }

  private:
    Child child_;
};

} // namespace

TEST_P(RaceOfRelease, last_references_meet) {
    const Node node;
    // The mapping's and the dma-buf's, in both orders, each stopped before it lets go.
    for (const char* edge : {"hcamem_vma_close:kref_put", "hcamem_region_put:kref_put",
                             "hcamem_mapping_release:mmdrop"}) {
        Region region(node, region_bytes, kind());
        UniqueFd dma_buf = node.export_range(region.data(), region.size());
        collide(
            edge, [&] { region.unmap(); }, Second::passes, [&] { dma_buf.reset(); });
        EXPECT_TRUE(eventually(nothing_held)) << edge;
    }
    for (const char* edge : {"hcamem_region_put:kref_put", "hcamem_region_release:mutex_lock",
                             "hcamem_free_page:__free_pages"}) {
        Region region(node, region_bytes, kind());
        Region other(node, region_bytes, kind());
        UniqueFd dma_buf = node.export_range(region.data(), region.size());
        region.unmap();
        collide(
            edge, [&] { dma_buf.reset(); }, Second::passes, [&] { other.unmap(); });
        EXPECT_TRUE(eventually(nothing_held)) << edge;
    }
}

TEST_P(RaceOfRelease, listing_meets_release) {
    const Node node;
    const auto list = [] {
        const std::string regions = read_text("/sys/kernel/debug/hcamem/regions");
        (void)read_text("/sys/kernel/debug/hcamem/frames");
        return regions;
    };
    // Also a region that is half given back is listed, with what is still charged.
    for (const char* edge : {"hcamem_region_release:mutex_lock", "hcamem_free_page:__free_pages",
                             "hcamem_region_end:mutex_lock", "hcamem_charge_end:put_device"}) {
        Region region(node, region_bytes, kind());
        collide(
            edge, [&] { region.unmap(); }, Second::may_wait, [&] { (void)list(); });
    }
    for (const char* edge :
         {"hcamem_regions_start:mutex_lock", "hcamem_regions_stop:mutex_unlock"}) {
        Region region(node, region_bytes, kind());
        collide(
            edge, [&] { (void)list(); }, Second::passes, [&] { region.unmap(); });
    }
    EXPECT_EQ(list(), "");
}

TEST_P(RaceOfRelease, charges_of_one_user_meet) {
    const Identity user{fresh_user(), rlim_t{region_bytes}, {}};
    const auto obtain = [&] {
        EXPECT_TRUE(succeeds_in_child(user, [](Channel&) {
            require(Region::attempt(Node(), page_size, {GetParam(), HCAMEM_FORK_POLICY_ZERO}) == 0,
                    "a page");
        }));
    };
    // The record of a user that holds nothing else is being made, or is going.
    for (const char* edge :
         {"hcamem_user_get:get_uid", "hcamem_user_get:spin_lock", "hcamem_user_get:spin_unlock",
          "hcamem_try_charge:spin_lock", "hcamem_uncharge:spin_lock", "hcamem_uncharge:spin_unlock",
          "hcamem_user_put:spin_lock", "hcamem_user_put:spin_unlock", "hcamem_user_put:free_uid"}) {
        collide(edge, obtain, Second::passes, obtain);
        // The whole limit is to be had, and no more.
        EXPECT_EQ(value_from_child(user, [] { return Region::attempt(Node(), region_bytes); }), 0)
            << edge;
        EXPECT_EQ(value_from_child(user, [] { return Region::attempt(Node(), region_bytes + 1); }),
                  EAGAIN)
            << edge;
    }
}

/// Pages that somebody keeps past the region: only mappings PAGES have such.
class RaceOfLeftovers : public NothingHeld {};
INSTANTIATE_TEST_SUITE_P(, RaceOfLeftovers, testing::Values(HCAMEM_MAPPING_PAGES), mapping_name);

TEST_P(RaceOfLeftovers, release_meets_the_retry) {
    Refused refused;
    for (const char* edge :
         {"hcamem_region_release:__module_get", "hcamem_region_release:mutex_lock",
          "hcamem_region_release:mutex_unlock", "hcamem_region_release:schedule_delayed_work"}) {
        PipeOfPage pipe;
        Child holder([&](Channel& channel) {
            Region region(Node(), region_bytes, kind());
            pipe.take(region);
            pipe.drain(); // its own ends
            channel.send(0);
            (void)channel.receive();
            region.unmap();
            channel.send(0);
        });
        (void)holder.channel().receive();
        // Another one is on the list already, so that there is something to look at.
        Region other(Node(), page_size, kind());
        PipeOfPage other_pipe(other);
        other.unmap();
        collide(
            edge,
            [&] {
                holder.channel().send(0);
                (void)holder.channel().receive();
            },
            Second::passes,
            [&] {
                pipe.drain();
                refused.try_again();
            });
        EXPECT_TRUE(eventually([] { return Node().total() == page_size; })) << edge;
        other_pipe.drain();
        EXPECT_TRUE(eventually(nothing_held)) << edge;
    }
}

TEST_P(RaceOfLeftovers, two_look_for_free_pages_at_once) {
    Refused one;
    Refused two;
    for (const char* edge :
         {"hcamem_leftovers_reap:mutex_lock", "hcamem_region_end:mutex_lock",
          "hcamem_leftovers_reap:module_put", "hcamem_leftovers_reap:mutex_unlock"}) {
        Region region(Node(), region_bytes, kind());
        PipeOfPage pipe(region);
        region.unmap();
        collide(
            edge,
            [&] {
                pipe.drain();
                one.try_again();
            },
            Second::may_wait, [&] { two.try_again(); });
        EXPECT_TRUE(eventually(nothing_held)) << edge;
    }
}

// The work that gave the last page back drops the module's last reference before it ends.
TEST_P(RaceOfLeftovers, the_end_of_the_retry_meets_the_unloading_of_the_module) {
    Region region(Node(), page_size, kind());
    PipeOfPage pipe(region);
    region.unmap();
    EXPECT_NE(shell("rmmod hcamem 2>/dev/null"), 0) << "a page is out";
    collide(
        "hcamem_leftovers_reap:mutex_unlock", [&] { pipe.drain(); }, Second::may_wait,
        unload_module); // tried again: who is held may have looked before the pipe was empty
    must_shell("insmod " + environment("HCAMEM_INJECT_MODULE"));
    ASSERT_TRUE(eventually([] { return Node::names().size() == 2; }));
}

// No edge in particular: everybody is a little late everywhere.
TEST_P(RaceOfRelease, everything_at_once_with_every_edge_delayed) {
    const std::string shake = std::string(inject_parameters) + "edge_shake";
    write_text(shake, "400");
    const Node node;
    std::atomic<bool> stop{false};
    std::atomic<unsigned> rounds{0};
    std::atomic<unsigned> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            for (unsigned i = t; !stop; ++i) {
                const Node own;
                Region region(i % 2 == 0 ? own : node, (1 + i % 4) * 16 * page_size, kind());
                const std::span<unsigned char> bytes = region.bytes().first(2 * page_size);
                fill(bytes, i);
                const UniqueFd dma_buf = node.export_range(region.data(), region.size());
                if (i % 3 == 0 && GetParam() == HCAMEM_MAPPING_PAGES) {
                    PipeOfPage pipe(region);
                    region.unmap();
                } else if (i % 3 == 1) {
                    const bool sane = succeeds_in_child({}, [&](Channel&) {
                        require(all_equal(bytes, 0), "the child finds zeros");
                    });
                    wrong += sane && holds(bytes, i) ? 0 : 1;
                } else {
                    wrong += holds(bytes, i) ? 0 : 1;
                }
                ++rounds;
            }
        });
    }
    EXPECT_TRUE(eventually([&] { return rounds >= 45; }));
    stop = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
    write_text(shake, "0");
    EXPECT_EQ(wrong, 0U);
}
