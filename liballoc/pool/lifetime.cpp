// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <utility>

#include "error/message.h"
#include "pool/pool.h"

namespace hcamem::core {

int pool::open(const hcamem_options& options, std::unique_ptr<source> from,
               std::uint64_t generation) noexcept {
    int result = open_memory(options, std::move(from), generation);
    if (result == 0 && (options.flags & HCAMEM_OPT_RELIEVE) != 0) {
        result = start_reliever();
        if (result != 0) {
            end_pressure();
            const std::lock_guard guard(growth_);
            state_.store(state::dead, std::memory_order_relaxed);
            release_slabs();
        }
    }
    return result;
}

int pool::open_memory(const hcamem_options& options, std::unique_ptr<source> from,
                      std::uint64_t generation) noexcept {
    const std::lock_guard guard(growth_);
    options_ = options;
    options_.hca = nullptr; // the caller's string
    misuse_is_error_ = (options.flags & HCAMEM_OPT_MISUSE_ERROR) != 0;
    source_ = std::move(from);
    source_kind_ = source_->kind();
    references_.store(open_reference, std::memory_order_relaxed);
    bindings_ = nullptr;
    memory_held_ = false;
    generation_.store(generation, std::memory_order_relaxed);
    state_.store(state::open, std::memory_order_relaxed);
    const int result = start(options);
    if (result != 0) {
        state_.store(state::dead, std::memory_order_relaxed);
        release_slabs();
    }
    return result;
}

int pool::start(const hcamem_options& options) noexcept {
    int result = checks_.open(options.flags);
    if (result == 0) {
        result = range_.reserve(options.maximum, slab_unit);
    }
    if (result == 0) {
        result = slabs_.init(options.maximum / slab_unit);
    }
    if (result == 0) {
        result = states_.init(range_.data(), options.maximum);
    }
    if (result == 0) {
        result = pages_.init(range_.data(), options.maximum, states_);
    }
    if (result != 0) {
        return result;
    }
    arenas_.init(pages_);
    if (!checks_.any()) {
        open_caches(cached_blocks);
    }
    while (result == 0 && slabs_.bytes() < options.initial) {
        // Not one slab: then parts of it can be given back.
        constexpr std::size_t piece = std::size_t{64} << 20;
        const std::size_t most = options.growth != 0 ? options.growth : piece;
        result = grow(std::min<std::size_t>(options.initial - slabs_.bytes(), most));
    }
    return result;
}

int pool::close() noexcept {
    end_pressure();
    const std::lock_guard guard(growth_);
    switch (state_.load(std::memory_order_relaxed)) {
    case state::open:
        break;
    case state::draining:
        return fail(EBUSY, "the pool is closed, but blocks are still live");
    case state::drained:
        state_.store(state::dead, std::memory_order_relaxed);
        return 0;
    case state::dead:
        return misuse(misuse_is_error_, "the pool was closed before");
    }
    state_.store(state::draining, std::memory_order_relaxed);
    // From here on no cache takes a block, so after this none has one.
    stop_caching();
    static_cast<void>(reclaim()); // it does not drain yet
    const std::uint64_t live = arenas_.drain() + pages_.drain();
    freed_.notify(); // who waits for a block finds the pool closed
    // From its drain() on, a heap has each free drop a reference: they were borrowed from
    // open_reference, which now turns into the number of blocks that were live.
    const std::uint64_t left =
        references_.fetch_add(live - open_reference, std::memory_order_acq_rel) + live -
        open_reference;
    if (left == 0) {
        state_.store(state::dead, std::memory_order_relaxed);
        release_slabs();
        retire_handle();
        return 0;
    }
    report_leaks(left);
    return fail(EBUSY,
                "%" PRIu64 " blocks are live: their memory stays until the last of them is freed",
                left);
}

/// The last live block of a closed pool was freed.
void pool::finish_drain() noexcept {
    const std::lock_guard guard(growth_);
    state_.store(state::drained, std::memory_order_relaxed);
    release_slabs();
    retire_handle();
}

void pool::release_slabs() noexcept {
    for (slab each = slabs_.next(0); each.state != slab_state::none;
         each = slabs_.next(each.unit + each.units)) {
        if (each.state != slab_state::lost && deregister_slab(each) != 0) {
            memory_held_ = true; // until detach() succeeds
        }
    }
    end_caches();
    pages_.reset();
    states_.reset();
    checks_.close();
    if (memory_held_) {
        return;
    }
    std::byte* const base = range_.data();
    for (slab each = slabs_.next(0); each.state != slab_state::none;
         each = slabs_.next(each.unit + each.units)) {
        std::byte* const begin = base + each.unit * slab_unit;
        if (each.state == slab_state::lost) {
            range_.leave_out(begin, begin + each.bytes());
        } else {
            annotate_unmapped(begin, each.bytes());
        }
    }
    slabs_.reset();
    range_.reset();
    source_.reset();
}

/// Makes the handle available for another pool, unless a binding still refers to it.
void pool::retire_handle() noexcept {
    if (bindings_ != nullptr || is_open() ||
        state_.load(std::memory_order_relaxed) == state::draining) {
        return;
    }
    if (memory_held_) {
        memory_held_ = false;
        release_slabs();
    }
    handle<pool>::retire(enter_process()->pools, this);
}

} // namespace hcamem::core
