// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Buffers of eager messages: 256 bytes to 64 KiB, each factor of two as frequent as any
// other, 10,000 live ones per thread, of which a random one is replaced.
#ifndef BENCH_PATTERNS_MIXED_HPP
#define BENCH_PATTERNS_MIXED_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "patterns/touch.hpp"

namespace bench {

inline constexpr std::size_t mixed_live = 10'000;
inline constexpr std::size_t mixed_smallest = 256;
inline constexpr std::size_t mixed_largest = 65536;

/// Cheap random numbers, so that little but the allocator is measured.
class mixed_random {
  public:
    explicit mixed_random(std::uint64_t seed) : state_(seed * 2 + 1) {}

    /// xorshift64*, by S. Vigna.
    std::uint64_t next() noexcept {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545F4914F6CDD1DULL;
    }

  private:
    std::uint64_t state_;
};

/// Sizes of that distribution, to be taken at a random index.
const std::array<std::uint32_t, 4096>& mixed_sizes();

/// One thread's live buffers. Aligned, so that two threads' that lie in a row share no cache
/// line: each replacement writes to it.
class alignas(128) live_set {
  public:
    explicit live_set(std::uint64_t seed) : random_(seed), blocks_(mixed_live) {}

    template <class User>
    void fill(User& user) {
        if (blocks_.front().address == nullptr) {
            for (block& one : blocks_) {
                one = fresh(user, random_.next());
            }
        }
    }

    template <class User>
    void replace(User& user) {
        const std::uint64_t drawn = random_.next();
        block& one = blocks_[((drawn >> 32) * mixed_live) >> 32];
        user.put(one.address, one.bytes);
        one = fresh(user, drawn);
    }

    template <class User>
    void empty(User& user) {
        for (block& one : blocks_) {
            if (one.address != nullptr) {
                user.put(one.address, one.bytes);
                one.address = nullptr;
            }
        }
    }

    /// Bytes asked for.
    [[nodiscard]] std::uint64_t bytes() const {
        std::uint64_t sum = 0;
        for (const block& one : blocks_) {
            sum += one.bytes;
        }
        return sum;
    }

  private:
    struct block {
        void* address = nullptr;
        std::size_t bytes = 0;
    };

    template <class User>
    block fresh(User& user, std::uint64_t drawn) {
        const std::size_t bytes = sizes_[drawn % sizes_.size()];
        block made{user.get(bytes), bytes};
        touch_(made.address);
        return made;
    }

    const std::array<std::uint32_t, 4096>& sizes_ = mixed_sizes();
    mixed_random random_;
    toucher touch_{mixed_smallest};
    std::vector<block> blocks_;
};

template <class User>
void run_mixed(benchmark::State& state, User& user, live_set& live) {
    live.fill(user);
    for ([[maybe_unused]] auto iteration : state) {
        live.replace(user);
    }
}

} // namespace bench

#endif
