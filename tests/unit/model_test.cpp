// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A random sequence of operations, checked against a simple model after each step.
// HCAMEM_TEST_SEED repeats a run.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/fake_registrar.hpp"
#include "support/pools.hpp"

namespace {

using namespace unit;

std::uint64_t seed() {
    const char* given = std::getenv("HCAMEM_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 0)
                            : std::random_device{}() * std::uint64_t{1'000'003};
}

class model {
  public:
    explicit model(std::uint64_t from) : random_(from) {
        hcamem_options options = test_options();
        options.maximum = maximum;
        pool_ = make_pool(options);
    }

    void step() {
        const std::uint64_t choice = random_() % 100;
        if (choice < 45) {
            allocate();
        } else if (choice < 80) {
            free_one();
        } else if (choice < 86) {
            allocate_many();
        } else if (choice < 90) {
            misuse();
        } else if (choice < 94) {
            hcamem_trim(pool_.get(), random_() % maximum);
        } else if (choice < 97) {
            attach_or_detach();
        } else {
            domain_.fail_registration(1 + random_() % 3, EIO);
        }
        check();
    }

    void finish() {
        while (!blocks_.empty()) {
            free_at(blocks_.begin());
        }
        domain_.fail_registration(0, 0);
        EXPECT_EQ(stats_of(pool_.get()).live_blocks, 0U);
        hcamem_trim(pool_.get(), 0);
        EXPECT_EQ(stats_of(pool_.get()).slab_bytes, 0U);
        if (binding_ != nullptr) {
            EXPECT_EQ(hcamem_detach(binding_), 0);
        }
        EXPECT_EQ(domain_.registered(), 0U);
    }

  private:
    static constexpr std::size_t maximum = 24 * MiB;

    struct block {
        std::size_t bytes;
        std::size_t align;
        std::size_t usable;
        unsigned char mark;
    };

    std::size_t random_size() {
        // Log-uniform from 0 to 4 MiB.
        const std::uint64_t power = random_() % 23;
        return random_() % (std::uint64_t{1} << power);
    }

    void adopt(void* address, std::size_t bytes, std::size_t align) {
        auto* begin = static_cast<unsigned char*>(address);
        const std::size_t usable = hcamem_usable(pool_.get(), address);
        ASSERT_GE(usable, bytes);
        const auto next = blocks_.lower_bound(begin);
        if (next != blocks_.end()) {
            ASSERT_LE(begin + usable, next->first) << "overlaps the next block";
        }
        if (next != blocks_.begin()) {
            const auto before = std::prev(next);
            ASSERT_LE(before->first + before->second.usable, begin) << "overlaps the one before";
        }
        const auto mark = static_cast<unsigned char>(random_());
        begin[0] = mark;
        begin[usable - 1] = mark;
        blocks_[begin] = {bytes, align, usable, mark};
    }

    void allocate() {
        const std::size_t bytes = random_size();
        const std::size_t align = random_() % 4 == 0 ? std::size_t{1} << (random_() % 22) : 0;
        void* address = hcamem_alloc(pool_.get(), bytes, align, 0);
        if (address == nullptr) {
            ASSERT_TRUE(errno == ENOMEM || errno == EIO) << hcamem_last_message();
            return;
        }
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(address) % std::max<std::size_t>(align, 64), 0U);
        adopt(address, bytes, align);
    }

    void allocate_many() {
        std::vector<void*> many(1 + random_() % 40);
        const std::size_t bytes = random_size() / 16;
        const int result = hcamem_alloc_n(pool_.get(), bytes, many.data(), many.size());
        if (result != 0) {
            ASSERT_TRUE(result == -ENOMEM || result == -EIO) << hcamem_last_message();
            return;
        }
        for (void* address : many) {
            adopt(address, bytes, 0);
        }
    }

    using place = std::map<unsigned char*, block>::iterator;

    place any() {
        return std::next(blocks_.begin(), static_cast<std::ptrdiff_t>(random_() % blocks_.size()));
    }

    void free_at(place where) {
        const auto [address, what] = *where;
        ASSERT_EQ(address[0], what.mark);
        ASSERT_EQ(address[what.usable - 1], what.mark);
        ASSERT_EQ(hcamem_usable(pool_.get(), address), what.usable);
        const int result = random_() % 2 == 0
                               ? hcamem_free(pool_.get(), address)
                               : hcamem_free_sized(pool_.get(), address, what.bytes, what.align);
        ASSERT_EQ(result, 0) << hcamem_last_message();
        blocks_.erase(where);
        last_freed_ = address;
    }

    void free_one() {
        if (!blocks_.empty()) {
            free_at(any());
        }
    }

    void misuse() {
        if (last_freed_ != nullptr && blocks_.count(last_freed_) == 0) {
            ASSERT_EQ(hcamem_free(pool_.get(), last_freed_), -EINVAL);
        }
        if (!blocks_.empty()) {
            const auto [address, what] = *any();
            ASSERT_EQ(hcamem_free(pool_.get(), address + 1 + random_() % (what.usable - 1)),
                      -EINVAL);
        }
    }

    void attach_or_detach() {
        if (binding_ != nullptr) {
            ASSERT_EQ(hcamem_detach(binding_), 0);
            binding_ = nullptr;
            ASSERT_EQ(domain_.registered(), 0U);
        } else if (const int result = attach(pool_.get(), domain_, &binding_); result != 0) {
            ASSERT_EQ(result, -EIO);
            ASSERT_EQ(domain_.registered(), 0U);
        }
    }

    void check() {
        const hcamem_stats now = stats_of(pool_.get());
        ASSERT_EQ(now.live_blocks, blocks_.size());
        ASSERT_LE(now.slab_bytes, maximum);
        ASSERT_EQ(domain_.registered(), binding_ != nullptr ? now.slabs : 0U);
        if (!blocks_.empty()) {
            const auto [address, what] = *any();
            ASSERT_EQ(address[0], what.mark);
            ASSERT_EQ(address[what.usable - 1], what.mark);
            if (binding_ != nullptr) {
                const std::uint32_t key = hcamem_lkey(binding_, address);
                ASSERT_TRUE(domain_.covers(address, key));
                ASSERT_TRUE(domain_.covers(address + what.usable - 1, key));
            }
        }
    }

    std::mt19937_64 random_;
    fake_domain domain_;
    pool_ptr pool_;
    hcamem_binding* binding_ = nullptr;
    std::map<unsigned char*, block> blocks_;
    unsigned char* last_freed_ = nullptr;
};

TEST(Model, a_random_sequence_of_operations_agrees_with_the_model) {
    const std::uint64_t chosen = seed();
    std::cout << "HCAMEM_TEST_SEED=" << chosen << '\n';
    model run(chosen);
    constexpr int steps = 20000;
    for (int count = 0; count < steps && !HasFatalFailure() && !HasNonfatalFailure(); ++count) {
        run.step();
    }
    run.finish();
}

} // namespace
