// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Threads and processes that do everything at once.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "kinds.hpp"
#include "support/child.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

class Concurrency : public MappingModes {
  protected:
    void SetUp() override { before_ = node_.total(); }
    void TearDown() override {
        EXPECT_TRUE(eventually([&] { return node_.total() == before_; }));
    }
    const Node node_;

  private:
    std::uint64_t before_ = 0;
};

INSTANTIATE_TEST_SUITE_P(, Concurrency, both_mappings, mapping_name);

} // namespace

TEST_P(Concurrency, threads_create_and_unmap_while_another_forks) {
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 2; ++t) {
        threads.emplace_back([&, t] {
            for (unsigned i = 0; !stop; ++i) {
                Region region(node_, (1 + i % 5) * 64 * page_size, kind());
                fill(region.bytes().first(page_size), t + i);
                if (i % 3 == 0) {
                    munmap(region.data() + page_size, page_size);
                }
                wrong += holds(region.bytes().first(page_size), t + i) ? 0 : 1;
                const UniqueFd fd = node_.export_range(region.data(), page_size);
            }
        });
    }
    for (int i = 0; i < 25; ++i) {
        const pid_t pid = spawn_process(i % 2 == 0 ? Spawn::fork : Spawn::raw_clone);
        if (pid == 0) {
            _exit(0);
        }
        int status = -1;
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        EXPECT_EQ(status, 0);
    }
    stop = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, 0);
}

TEST_P(Concurrency, threads_fault_one_region_at_once) {
    for (int round = 0; round < 5; ++round) {
        const Region region(node_, 8 * MiB, kind());
        std::atomic<int> ready{0};
        std::vector<std::thread> threads;
        for (std::size_t t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                ++ready;
                while (ready < 4) {
                    std::this_thread::yield();
                }
                for (std::size_t at = t; at < region.size(); at += page_size) {
                    region.data()[at] = static_cast<unsigned char>(t + 1);
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        for (std::size_t at = 0; at < region.size(); at += page_size) {
            for (std::size_t t = 0; t < 4; ++t) {
                ASSERT_EQ(region.data()[at + t], t + 1) << at;
            }
        }
    }
}

TEST_P(Concurrency, one_offset_is_won_by_one_thread) {
    for (int round = 0; round < 40; ++round) {
        hcamem_create request = create_request(4 * page_size, kind());
        ASSERT_EQ(node_.try_create(request), 0);
        std::atomic<int> ready{0};
        std::atomic<int> won{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t) {
            threads.emplace_back([&] {
                ++ready;
                while (ready < 3) {
                    std::this_thread::yield();
                }
                void* mapped = mmap(nullptr, 4 * page_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                                    node_.fd(), static_cast<off_t>(request.offset));
                if (mapped != MAP_FAILED) {
                    ++won;
                    munmap(mapped, 4 * page_size);
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        ASSERT_EQ(won, 1) << "round " << round;
    }
}

TEST_P(Concurrency, export_races_with_unmap) {
    std::atomic<unsigned char*> target{nullptr};
    std::atomic<bool> stop{false};
    std::atomic<int> odd{0};
    std::thread exporter([&] {
        while (!stop) {
            hcamem_export request{};
            request.addr = reinterpret_cast<std::uintptr_t>(target.load());
            request.length = 3 * page_size;
            const int error = node_.try_export(request);
            if (error == 0) {
                const UniqueFd fd(request.fd);
                odd += lseek(fd.get(), 0, SEEK_END) == static_cast<off_t>(3 * page_size) ? 0 : 1;
            } else {
                odd += error == EINVAL ? 0 : 1;
            }
        }
    });
    for (int i = 0; i < 200; ++i) {
        const Region region(node_, 3 * page_size, kind());
        target = region.data();
        std::this_thread::yield();
    }
    stop = true;
    exporter.join();
    EXPECT_EQ(odd, 0);
}

// Obtaining memory takes long; meanwhile other threads must be able to map, fault and look.
// Shown by order, not by time: a look that begins after the charge and ends before CREATE
// returns cannot have waited for it.
TEST_P(Concurrency, create_does_not_hold_the_address_space) {
    bool seen = false;
    for (int round = 0; round < 10 && !seen; ++round) {
        const std::uint64_t before = node_.total();
        std::atomic<bool> done{false};
        std::atomic<int> error{-1};
        Node own;
        std::thread creator([&] {
            hcamem_create request = create_request(512 * MiB, kind());
            error = own.try_create(request);
            done = true;
        });
        while (node_.total() == before && !done) {
        }
        (void)read_text("/proc/self/maps");
        void* mapped =
            mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *static_cast<volatile char*>(mapped) = 1;
        munmap(mapped, page_size);
        seen = !done;
        creator.join();
        ASSERT_EQ(error, 0);
    }
    EXPECT_TRUE(seen) << "nobody got at the address space before CREATE was over";
}
