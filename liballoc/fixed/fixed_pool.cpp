// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "fixed/fixed_pool.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "error/message.h"
#include "heap/size_class.h"
#include "os/process.h"
#include "pool/pool.h"

namespace hcamem::core {
namespace {

constexpr std::uint32_t largest_cache = 256;

constexpr std::size_t round_up(std::size_t bytes, std::size_t multiple) noexcept {
    return (bytes + multiple - 1) / multiple * multiple;
}

int check(const fixed_pool::shape& wanted) noexcept {
    if (wanted.count == 0) {
        return fail_static(EINVAL, "a buffer pool of 0 buffers");
    }
    if (wanted.reserved > wanted.count) {
        return fail(EINVAL, "a reserve of %u buffers of only %u", wanted.reserved, wanted.count);
    }
    if (wanted.align != 0 && (!std::has_single_bit(wanted.align) || wanted.align > slab_unit)) {
        return fail(EINVAL, "alignment %zu is not a power of two up to %s", wanted.align,
                    size_text(slab_unit).c_str());
    }
    // The reciprocal is exact up to here.
    constexpr std::size_t largest_stride = std::size_t{1} << 30;
    if (wanted.bytes > largest_stride || std::size_t{wanted.count} > SIZE_MAX / largest_stride) {
        return fail(EINVAL, "buffers of %zu bytes: at most %s each", wanted.bytes,
                    size_text(largest_stride).c_str());
    }
    const std::size_t stride =
        round_up(std::max<std::size_t>(wanted.bytes, 1), std::max(wanted.align, min_align));
    if (stride * wanted.count > UINT64_MAX / stride) {
        return fail(EINVAL, "%u buffers of %s are more than one buffer pool can number",
                    wanted.count, size_text(stride).c_str());
    }
    return 0;
}

} // namespace

int fixed_pool::open(pool& from, const shape& wanted) noexcept {
    int result = check(wanted);
    if (result != 0) {
        return result;
    }
    const std::size_t align = std::max(wanted.align, min_align);
    stride = round_up(std::max<std::size_t>(wanted.bytes, 1), align);
    void* block = nullptr;
    result = from.allocate(stride * wanted.count, align, 0, block);
    if (result != 0) {
        return result;
    }
    result = make_tables(wanted);
    if (result != 0) {
        from.deallocate(block);
        return result;
    }
    from.checks().divide(block, stride * wanted.count);
    pool_ = &from;
    base = static_cast<const std::byte*>(block);
    reciprocal = UINT64_MAX / stride + 1;
    cache_id = heap_id();
    const std::uint32_t common = wanted.count - wanted.reserved;
    cacheable = common;
    count_.store(wanted.count, std::memory_order_relaxed);
    {
        const std::lock_guard guard(lock_);
        closed_ = false;
        // The first buffers are on top.
        for (std::uint32_t index = wanted.count; index-- > 0;) {
            push(index < common ? free_ : reserve_, index);
            annotate_free(at(index));
        }
    }
    // A thread keeps at most a quarter, so that with few threads few buffers have to be
    // taken out of caches when all are wanted.
    capacity_[0] = static_cast<std::uint16_t>(std::clamp(common / 4, 1U, largest_cache));
    if (!from.checks().any()) {
        open_caches(capacity_);
    }
    return 0;
}

/// Free lists, where a buffer is, and states, one behind the other.
int fixed_pool::make_tables(const shape& wanted) noexcept {
    const std::size_t count = wanted.count;
    const int result =
        tables_.make_table(count * (sizeof(std::uint32_t) + sizeof(bool) + sizeof(block_state)));
    if (result != 0) {
        return result;
    }
    auto* const indices = tables_.as<std::uint32_t>();
    free_ = {.indices = indices, .count = 0};
    reserve_ = {.indices = indices + (count - wanted.reserved), .count = 0};
    behind_ = reinterpret_cast<bool*>(indices + count);
    states = reinterpret_cast<block_state*>(behind_ + count);
#if defined(__SANITIZE_ADDRESS__)
    annotated = true;
#endif
    return 0;
}

bool fixed_pool::inherited() const noexcept {
    return pool_ != nullptr && pool_->inherited();
}

bool fixed_pool::misuse_is_error() const noexcept {
    return pool_ != nullptr && pool_->misuse_is_error();
}

int fixed_pool::take(bool use_reserve, void*& buffer) noexcept {
    if (get(buffer)) {
        return 0;
    }
    if (refill(0, buffer) || take_what_is_kept(buffer)) {
        pool_->give_out(buffer, stride);
        return 0;
    }
    return use_reserve && take_reserved(buffer) ? 0 : exhausted(use_reserve);
}

/// With all that are free in the list, and where no cache can take them meanwhile. False: all
/// are out.
bool fixed_pool::take_what_is_kept(void*& buffer) noexcept {
    cached_block one{};
    bool taken = false;
    bool drained = false;
    {
        const emptied_caches emptied(*this);
        drained = emptied.drained();
        taken = !drained && take_behind(0, &one, 1) != 0;
        if (taken) {
            hand_out(&one, &one + 1);
            buffer = one.block;
        }
    }
    if (drained) {
        end();
    }
    return taken;
}

bool fixed_pool::take_reserved(void*& buffer) noexcept {
    const std::lock_guard guard(lock_);
    if (closed_ || reserve_.count == 0) {
        return false;
    }
    const std::uint32_t index = reserve_.indices[--reserve_.count];
    behind_[index] = false;
    states[index].store(live, std::memory_order_relaxed);
    buffer = at(index);
    pool_->give_out(buffer, stride);
    return true;
}

int fixed_pool::exhausted(bool use_reserve) noexcept {
    {
        const std::lock_guard guard(lock_);
        if (closed_) {
            return fail_static(EBADF, "the buffer pool was destroyed");
        }
    }
    const auto common = static_cast<std::uint32_t>(cacheable);
    if (use_reserve || common == count()) {
        return fail(ENOBUFS, "all %u buffers are out", count());
    }
    return fail(ENOBUFS, "all %u buffers are out, but for a reserve of %u", common,
                count() - common);
}

int fixed_pool::put_back(void* buffer) noexcept {
    std::size_t index = 0;
    if (!is_buffer(buffer, index)) {
        return misuse(misuse_is_error(), "pointer %p is not a buffer of this pool", buffer);
    }
    block_state& state = states[index];
    std::uint8_t expected = state.load(std::memory_order_relaxed);
    const bool is_out = expected == live || (expected == noted && !is_noted(0, buffer));
    if (!is_out || !state.compare_exchange_strong(expected, 0, std::memory_order_relaxed)) {
        return misuse(misuse_is_error(),
                      "buffer %p is not out: it was put back before, or never handed out", buffer);
    }
    if (pool_->checks().any()) {
        pool_->checks().take_back(buffer, stride);
    }
    annotate_free(buffer);
    const cached_block freed{buffer, &state};
    if (index < cacheable ? put_slowly(0, freed) : put_behind(0, &freed, 1)) {
        end();
    }
    return 0;
}

void fixed_pool::spill_cache() noexcept {
    if (spill(0)) {
        end();
    }
}

std::size_t fixed_pool::take_behind(std::size_t /*kind*/, cached_block* blocks,
                                    std::size_t n) noexcept {
    const void* twice = nullptr;
    std::size_t got = 0;
    {
        const std::lock_guard guard(lock_);
        if (closed_) {
            return 0;
        }
        const std::size_t end = free_.count;
        free_.count -= static_cast<std::uint32_t>(std::min(n, end));
        for (std::size_t each = free_.count; each < end; ++each) {
            const std::uint32_t index = free_.indices[each];
            behind_[index] = false;
            // Else two threads have put it at once, and it was got in between.
            if (states[index].load(std::memory_order_relaxed) == 0) [[likely]] {
                blocks[got++] = {at(index), not_noted()};
            } else {
                twice = at(index);
            }
        }
    }
    if (twice != nullptr) {
        report_twice(twice);
    }
    return got;
}

void fixed_pool::hand_out(cached_block* bottom, cached_block* top) noexcept {
    cached_block* const taken = top - 1;
    states[number_of(taken->block)].store(live, std::memory_order_relaxed);
    cached_block* const end = taken - std::min(most_noted, taken - bottom);
    for (cached_block* next = taken; next != end && next[-1].state == not_noted();) {
        --next;
        states[number_of(next->block)].store(noted, std::memory_order_relaxed);
        next->state = nullptr;
    }
}

bool fixed_pool::put_behind(std::size_t /*kind*/, const cached_block* blocks,
                            std::size_t n) noexcept {
    const void* twice = nullptr;
    bool ended = false;
    {
        const std::lock_guard guard(lock_);
        for (std::size_t each = 0; each < n; ++each) {
            const std::size_t index = number_of(blocks[each].block);
            if (blocks[each].state == nullptr) {
                states[index].store(0, std::memory_order_relaxed);
            }
            free_list& list = index < cacheable ? free_ : reserve_;
            const bool is_out = states[index].load(std::memory_order_relaxed) != 0;
            twice = !is_out && push(list, index) ? twice : blocks[each].block;
        }
        ended = closed_ && all_back();
    }
    if (twice != nullptr) {
        report_twice(twice);
    }
    return ended;
}

void fixed_pool::report_twice(const void* block) noexcept {
    misuse(misuse_is_error(), "buffer %p was put back by two threads at once", block);
}

bool fixed_pool::push(free_list& list, std::size_t index) noexcept {
    if (behind_[index]) {
        return false;
    }
    behind_[index] = true;
    list.indices[list.count++] = static_cast<std::uint32_t>(index);
    return true;
}

bool fixed_pool::all_back() const noexcept {
    return free_.count + reserve_.count == count();
}

int fixed_pool::close() noexcept {
    // From here on no cache takes a buffer, so after this none has one.
    {
        const std::lock_guard guard(lock_);
        if (closed_) {
            return fail_static(EBUSY, "the buffer pool is destroyed, but buffers are still out");
        }
    }
    stop_caching();
    static_cast<void>(reclaim()); // it is not closed yet
    {
        const std::lock_guard guard(lock_);
        closed_ = true;
        if (!all_back()) {
            if (pool_->reports_leaks()) {
                report_out();
            }
            return fail(EBUSY, "%u of %u buffers are out: their memory stays until all are back",
                        count() - free_.count - reserve_.count, count());
        }
    }
    end();
    return 0;
}

/// lock_ is held.
void fixed_pool::report_out() const noexcept {
    print_line("buffer pool %p is destroyed while %u of %u buffers of %zu bytes are out",
               static_cast<const void*>(this), count() - free_.count - reserve_.count, count(),
               stride);
    if (pool_->checks().log() != nullptr) {
        pool_->checks().log()->print(at(0), at(count()));
    }
}

/// All buffers are back, and nobody gets one any more.
void fixed_pool::end() noexcept {
    end_caches();
    void* const block = at(0);
    pool_->checks().unite(block, stride * count());
    count_.store(0, std::memory_order_relaxed);
    cacheable = 0;
    base = nullptr;
    states = nullptr;
    tables_.reset();
    pool_->deallocate(block);
    handle<fixed_pool>::retire(enter_process()->buffer_pools, this);
}

} // namespace hcamem::core
