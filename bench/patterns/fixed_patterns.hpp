// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The patterns with buffers of one size. A `User` is one thread's view of an implementation:
// get() and put(), and for the bulk pattern get_n() and put_n().
#ifndef BENCH_PATTERNS_FIXED_PATTERNS_HPP
#define BENCH_PATTERNS_FIXED_PATTERNS_HPP

#include <array>
#include <cstddef>

#include <benchmark/benchmark.h>

#include "patterns/spsc_ring.hpp"
#include "patterns/touch.hpp"
#include "report/bench_case.hpp"

namespace bench {

using batch_of_buffers = std::array<void*, batch_size>;

template <class User>
concept bulk_user = requires(User user, batch_of_buffers& buffers) {
    user.get_n(buffers);
    user.put_n(buffers);
};

template <class User>
void run_pair(benchmark::State& state, User& user, toucher touch) {
    for ([[maybe_unused]] auto iteration : state) {
        void* const buffer = user.get();
        touch(buffer);
        user.put(buffer);
    }
}

template <class User>
void batch_once(User& user, batch_of_buffers& buffers, toucher& touch) {
    for (void*& buffer : buffers) {
        buffer = user.get();
        touch(buffer);
    }
    for (void* const buffer : buffers) {
        user.put(buffer);
    }
}

template <class User>
void run_batch(benchmark::State& state, User& user, toucher touch) {
    batch_of_buffers buffers{};
    for ([[maybe_unused]] auto iteration : state) {
        batch_once(user, buffers, touch);
    }
}

template <bulk_user User>
void run_bulk(benchmark::State& state, User& user, toucher touch) {
    batch_of_buffers buffers{};
    for ([[maybe_unused]] auto iteration : state) {
        user.get_n(buffers);
        for (void* const buffer : buffers) {
            touch(buffer);
        }
        user.put_n(buffers);
    }
}

/// Thread 0 gets, thread 1 gives back; both make as many iterations.
template <class User>
void run_across(benchmark::State& state, User& user, toucher touch, spsc_ring& ring) {
    if (state.thread_index() == 0) {
        for ([[maybe_unused]] auto iteration : state) {
            void* const buffer = user.get();
            touch(buffer);
            ring.push(buffer);
        }
    } else {
        for ([[maybe_unused]] auto iteration : state) {
            user.put(ring.pop());
        }
    }
}

/// Runs the case's pattern. A few rounds before it fill the caches of a new thread.
template <class User>
void run_fixed(const bench_case& what, benchmark::State& state, User& user, spsc_ring& ring) {
    toucher touch(what.bytes);
    batch_of_buffers buffers{};
    for (int round = 0; round < 8; ++round) {
        if constexpr (bulk_user<User>) {
            user.get_n(buffers);
            user.put_n(buffers);
        } else {
            batch_once(user, buffers, touch);
        }
    }
    switch (what.kind) {
    case pattern::pair:
        return run_pair(state, user, touch);
    case pattern::batch:
        return run_batch(state, user, touch);
    case pattern::bulk:
        if constexpr (bulk_user<User>) {
            run_bulk(state, user, touch);
        }
        return;
    case pattern::across:
        return run_across(state, user, touch, ring);
    case pattern::mixed:
    case pattern::lkey:
        return;
    }
}

} // namespace bench

#endif
