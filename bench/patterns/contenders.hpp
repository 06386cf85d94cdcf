// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Makes a contender of an implementation. An implementation has a constructor that takes
// the case and a nested `user`, one thread's view, constructed from it:
//   for sized_contender  get(bytes) and put(buffer, bytes)
//   for fixed_contender  get() and put(buffer), and get_n() and put_n() if it has them
#ifndef BENCH_PATTERNS_CONTENDERS_HPP
#define BENCH_PATTERNS_CONTENDERS_HPP

#include <cstddef>
#include <memory>
#include <vector>

#include "contender.hpp"
#include "patterns/fixed_patterns.hpp"
#include "patterns/mixed.hpp"

namespace bench {

template <class Impl>
class fixed_contender final : public contender {
  public:
    explicit fixed_contender(const bench_case& what) : case_(what), impl_(what) {}

    void run(benchmark::State& state) override {
        typename Impl::user user(impl_);
        run_fixed(case_, state, user, ring_);
    }

    static std::unique_ptr<contender> make(const bench_case& what) {
        if (what.kind == pattern::mixed || what.kind == pattern::lkey ||
            (what.kind == pattern::bulk && !bulk_user<typename Impl::user>)) {
            return nullptr;
        }
        return std::make_unique<fixed_contender>(what);
    }

  private:
    bench_case case_;
    Impl impl_;
    spsc_ring ring_;
};

template <class Impl>
class sized_contender final : public contender {
  public:
    explicit sized_contender(const bench_case& what) : case_(what), impl_(what) {
        for (int thread = 0; what.kind == pattern::mixed && thread < what.threads; ++thread) {
            live_.emplace_back(static_cast<std::uint64_t>(thread) + 1);
        }
    }
    sized_contender(const sized_contender&) = delete;
    sized_contender& operator=(const sized_contender&) = delete;
    sized_contender(sized_contender&&) = delete;
    sized_contender& operator=(sized_contender&&) = delete;
    ~sized_contender() override {
        typename Impl::user user(impl_);
        for (live_set& live : live_) {
            live.empty(user);
        }
    }

    void run(benchmark::State& state) override {
        typename Impl::user user(impl_);
        if (case_.kind == pattern::mixed) {
            run_mixed(state, user, live_[static_cast<std::size_t>(state.thread_index())]);
        } else {
            one_size view{user, case_.bytes};
            run_fixed(case_, state, view, ring_);
        }
    }

    static std::unique_ptr<contender> make(const bench_case& what) {
        if (what.kind == pattern::bulk || what.kind == pattern::lkey) {
            return nullptr;
        }
        return std::make_unique<sized_contender>(what);
    }

  private:
    struct one_size {
        typename Impl::user& user;
        std::size_t bytes;

        void* get() { return user.get(bytes); }
        void put(void* buffer) { user.put(buffer, bytes); }
    };

    bench_case case_;
    Impl impl_;
    std::vector<live_set> live_;
    spsc_ring ring_;
};

/// Buffers that a pool of one size is made with: what the ring, a batch of each thread
/// and the caches of two threads can hold, and as many again.
inline constexpr std::size_t fixed_buffers = 4096;

} // namespace bench

#endif
