// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Many buffers at once. Mostly they are a run: neighbours, in rising or falling order, as
// they were when they were last given back together. Then their states are neighbours too,
// and are looked at and set as bytes in a row.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "error/message.h"
#include "fixed/fixed_pool.h"

namespace hcamem::core {
namespace {

std::uintptr_t to_number(const void* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address);
}

#if defined(__SANITIZE_THREAD__)
// Which sees each access, and takes those in a row for races with the atomic ones.
bool all_are(const block_state* states, std::size_t n, std::uint8_t value) noexcept {
    return std::all_of(states, states + n, [&](const block_state& state) {
        return state.load(std::memory_order_relaxed) == value;
    });
}
void set_all(block_state* states, std::size_t n, std::uint8_t value) noexcept {
    std::for_each(states, states + n,
                  [&](block_state& state) { state.store(value, std::memory_order_relaxed); });
}
#else
bool all_are(const block_state* states, std::size_t n, std::uint8_t value) noexcept {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(states);
    std::uint8_t differences = 0;
    for (std::size_t index = 0; index < n; ++index) {
        differences |= bytes[index] ^ value;
    }
    return differences == 0;
}
void set_all(block_state* states, std::size_t n, std::uint8_t value) noexcept {
    std::memset(static_cast<void*>(states), value, n);
}
#endif

// Twice as many at a time where the processor can. A sanitizer would not be ready yet when
// the loader asks which one it is.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define FOR_WIDE_PROCESSORS [[gnu::target_clones("avx2", "default")]]
#else
#define FOR_WIDE_PROCESSORS
#endif

// Four addresses, or two cached_blocks.
using four [[gnu::vector_size(32)]] = std::uintptr_t;
static_assert(sizeof(four) == 2 * sizeof(cached_block));

/// Copies n addresses out of the cache; whether each lies `step` behind the one before it.
FOR_WIDE_PROCESSORS bool copy_out(void** buffers, const cached_block* taken, std::size_t n,
                                  std::uintptr_t step) noexcept {
    std::uintptr_t next = to_number(taken[0].block);
    four expected{next, next + step, next + 2 * step, next + 3 * step};
    four differences{};
    std::size_t index = 0;
    for (; index + 3 < n; index += 4) {
        four low;
        four high;
        std::memcpy(&low, taken + index, sizeof low);
        std::memcpy(&high, taken + index + 2, sizeof high);
        const four addresses = __builtin_shufflevector(low, high, 0, 2, 4, 6);
        std::memcpy(buffers + index, &addresses, sizeof addresses);
        differences |= addresses ^ expected;
        expected += 4 * step;
    }
    std::uintptr_t difference =
        (differences[0] | differences[1]) | (differences[2] | differences[3]);
    for (next += index * step; index < n; ++index, next += step) {
        buffers[index] = taken[index].block;
        difference |= to_number(buffers[index]) ^ next;
    }
    return difference == 0;
}

/// Copies n addresses into the cache, with their states; whether each lies `step` behind the
/// one before it.
FOR_WIDE_PROCESSORS bool copy_in(cached_block* freed, void* const* buffers, std::size_t n,
                                 const cached_block& first, std::uintptr_t step,
                                 std::ptrdiff_t state_step) noexcept {
    std::uintptr_t next = to_number(first.block);
    const std::uintptr_t state = to_number(first.state);
    const auto state_by = static_cast<std::uintptr_t>(state_step);
    four expected{next, next + step, next + 2 * step, next + 3 * step};
    four states{state, state + state_by, state + 2 * state_by, state + 3 * state_by};
    four differences{};
    std::size_t index = 0;
    for (; index + 3 < n; index += 4) {
        four addresses;
        std::memcpy(&addresses, buffers + index, sizeof addresses);
        const four low = __builtin_shufflevector(addresses, states, 0, 4, 1, 5);
        const four high = __builtin_shufflevector(addresses, states, 2, 6, 3, 7);
        std::memcpy(freed + index, &low, sizeof low);
        std::memcpy(freed + index + 2, &high, sizeof high);
        differences |= addresses ^ expected;
        expected += 4 * step;
        states += 4 * state_by;
    }
    std::uintptr_t difference =
        (differences[0] | differences[1]) | (differences[2] | differences[3]);
    block_state* own = first.state + static_cast<std::ptrdiff_t>(index) * state_step;
    for (next += index * step; index < n; ++index, next += step, own += state_step) {
        freed[index] = {buffers[index], own};
        difference |= to_number(buffers[index]) ^ next;
    }
    return difference == 0;
}

} // namespace

bool fixed_pool::take_cached_n(void** buffers, std::size_t n) noexcept {
    block_cache* const mine = fixed_head::cache();
    const cached_block* const taken = mine != nullptr ? mine->take_n(n) : nullptr;
    if (taken == nullptr) {
        return false;
    }
    const std::uintptr_t step =
        n > 1 ? to_number(taken[1].block) - to_number(taken[0].block) : stride;
    const bool is_run = copy_out(buffers, taken, n, step) && (step == stride || step == -stride);
    block_state* const lowest = step == stride ? taken[0].state : taken[n - 1].state;
    const block_state* const highest = step == stride ? taken[n - 1].state : taken[0].state;
    // Both are the blocks' own if they are that far apart; else they may be nullptr.
    if (is_run && n > 1 && to_number(highest) - to_number(lowest) == n - 1 &&
        all_are(lowest, n, 0)) {
        set_all(lowest, n, live);
        for (std::size_t index = 0; annotated && index < n; ++index) {
            annotate_live(buffers[index]);
        }
        return true;
    }
    if (take_scattered(taken, buffers, n)) {
        return true;
    }
    mine->untake_n(n);
    return false;
}

/// False: one of them is live; none was taken.
bool fixed_pool::take_scattered(const cached_block* taken, void** buffers, std::size_t n) noexcept {
    if (std::any_of(taken, taken + n, [this](const cached_block& each) {
            const block_state* const state = state_to_note(each);
            return state != nullptr && state->load(std::memory_order_relaxed) != 0;
        })) {
        return false;
    }
    for (std::size_t index = 0; index < n; ++index) {
        if (block_state* const state = state_to_note(taken[index])) {
            state->store(live, std::memory_order_relaxed);
        }
        buffers[index] = taken[index].block;
        annotate_live(buffers[index]);
    }
    return true;
}

/// nullptr: the buffer is noted as live.
block_state* fixed_pool::state_to_note(const cached_block& taken) const noexcept {
    return taken.state == not_noted() ? states + number_of(taken.block) : taken.state;
}

/// Frees n live buffers that are a run and that a cache may keep. False: they are not.
bool fixed_pool::free_run(void* const* buffers, std::size_t n, cached_block* freed) noexcept {
    const std::uintptr_t step = n > 1 ? to_number(buffers[1]) - to_number(buffers[0]) : stride;
    std::size_t index_of_lowest = 0;
    if ((step != stride && step != -stride) ||
        !find(buffers[step == stride ? 0 : n - 1], index_of_lowest) || n > cacheable ||
        index_of_lowest > cacheable - n) {
        return false;
    }
    block_state* const lowest = states + index_of_lowest;
    const cached_block first_freed{buffers[0], step == stride ? lowest : lowest + (n - 1)};
    if (!copy_in(freed, buffers, n, first_freed, step, step == stride ? 1 : -1) ||
        !all_are(lowest, n, live)) {
        return false;
    }
    set_all(lowest, n, 0);
    for (std::size_t index = 0; annotated && index < n; ++index) {
        annotate_free(buffers[index]);
    }
    return true;
}

bool fixed_pool::put_cached_n(void* const* buffers, std::size_t n) noexcept {
    block_cache* const mine = fixed_head::cache();
    cached_block* const room = mine != nullptr ? mine->room(n) : nullptr;
    if (room == nullptr || !free_run(buffers, n, room)) {
        return false;
    }
    if (!mine->publish(room + n)) {
        spill_cache();
    }
    return true;
}

int fixed_pool::take_n(bool use_reserve, void** buffers, std::size_t n) noexcept {
    int result = 0;
    std::size_t got = 0;
    while (result == 0 && got < n) {
        result = take(use_reserve, buffers[got]);
        got += result == 0 ? 1 : 0;
    }
    if (result != 0) {
        for (std::size_t index = 0; index < got; ++index) {
            put_back(buffers[index]);
        }
        std::fill_n(buffers, got, nullptr);
    }
    return result;
}

int fixed_pool::put_back_n(void* const* buffers, std::size_t n) noexcept {
    int result = 0;
    for (std::size_t index = 0; index < n; ++index) {
        if (buffers[index] == nullptr || put(buffers[index])) {
            continue;
        }
        const int put = put_back(buffers[index]);
        result = result == 0 ? put : result;
    }
    return result;
}

} // namespace hcamem::core
