// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>

#include "error/message.h"
#include "pool/pool.h"

namespace hcamem::core {
namespace {

/// Whether a block that is freed can end such a failure.
bool may_pass(int error) noexcept {
    return error == -ENOMEM || error == -EAGAIN || error == -EDQUOT;
}

event_count::clock::time_point deadline_of(int timeout_ms) noexcept {
    return timeout_ms < 0 ? event_count::clock::time_point::max()
                          : event_count::clock::now() + std::chrono::milliseconds(timeout_ms);
}

} // namespace

int pool::plan(std::size_t bytes, std::size_t align, request& made) const noexcept {
    align = align == 0 ? min_align : align;
    if (!std::has_single_bit(align) || align > slab_unit) {
        return fail(EINVAL, "alignment %zu is not a power of two up to %s", align,
                    size_text(slab_unit).c_str());
    }
    if (bytes > options_.maximum) {
        return fail(ENOMEM, "%zu bytes are more than the pool's maximum of %s (HCAMEM_MAXIMUM)",
                    bytes, size_text(options_.maximum).c_str());
    }
    align = std::max(align, min_align);
    const std::size_t wanted = std::max<std::size_t>(bytes, 1);
    const std::size_t rounded = (wanted + align - 1) / align * align;
    made.bytes = wanted;
    if (rounded <= largest_class_bytes && align <= page_bytes) {
        made.class_index = class_of(rounded);
        made.pages = size_classes[made.class_index].span_pages;
        made.align = page_bytes;
    } else {
        made.class_index = class_count;
        made.pages = pages_of(wanted);
        made.align = std::max(align, page_bytes);
    }
    return 0;
}

void pool::give_out(void* block, std::size_t bytes) const noexcept {
    annotate_live(block, bytes);
    const void* where = nullptr;
    if (checks_.any() && !checks_.hand_out(block, bytes, where)) {
        misuse(misuse_is_error_,
               "block %p of %zu bytes was written to while it was free, first at byte %zu", block,
               bytes,
               static_cast<std::size_t>(static_cast<const std::byte*>(where) -
                                        static_cast<const std::byte*>(block)));
    }
}

pool::attempt pool::try_allocate(const request& wanted, void*& block) noexcept {
    if (!wanted.is_large()) {
        block_cache* const mine = cache(wanted.class_index);
        if (!(mine != nullptr && mine->take<false>(block, block_states::live_state)) &&
            !refill(wanted.class_index, block)) {
            return is_open() ? attempt::no_room : attempt::closed;
        }
        give_out(block, size_classes[wanted.class_index].bytes);
        return attempt::done;
    }
    std::uint32_t first = no_page;
    switch (pages_.take_large(wanted.pages, wanted.align, first)) {
    case page_heap::result::done:
        block = pages_.page_address(first);
        give_out(block, wanted.pages * page_bytes);
        return attempt::done;
    case page_heap::result::draining:
        return attempt::closed;
    case page_heap::result::no_room:
        break;
    }
    return attempt::no_room;
}

int pool::closed_error() noexcept {
    return fail_static(EBADF, "the pool was closed");
}

int pool::allocate(std::size_t bytes, std::size_t align, int timeout_ms, void*& block) noexcept {
    if (timeout_ms < -1) {
        return fail(EINVAL, "timeout_ms %d: 0 fails at once, -1 waits without limit", timeout_ms);
    }
    request wanted{};
    const int result = plan(bytes, align, wanted);
    if (result != 0) {
        return result;
    }
    switch (try_allocate(wanted, block)) {
    case attempt::done:
        return 0;
    case attempt::closed:
        return closed_error();
    case attempt::no_room:
        break;
    }
    return allocate_slowly(wanted, timeout_ms, block);
}

/// While somebody waits, what is freed must not lie in caches.
class pool::caching_stopped {
  public:
    caching_stopped() noexcept = default;
    caching_stopped(const caching_stopped&) = delete;
    caching_stopped& operator=(const caching_stopped&) = delete;
    ~caching_stopped() {
        if (pool_ != nullptr) {
            pool_->resume_caching();
        }
    }

    /// False: it was done before.
    bool stop(pool& in) noexcept {
        if (pool_ != nullptr) {
            return false;
        }
        pool_ = &in;
        in.stop_caching();
        return true;
    }

  private:
    pool* pool_ = nullptr;
};

int pool::allocate_slowly(const request& wanted, int timeout_ms, void*& block) noexcept {
    // Blocks that were taken out of caches for this call may be taken by others again and
    // again, and the call is to end.
    constexpr int most_attempts = 100;
    const auto deadline =
        timeout_ms == 0 ? event_count::clock::time_point{} : deadline_of(timeout_ms);
    caching_stopped caching;
    for (int attempts = 1;; ++attempts) {
        // Before the attempt: a block that is freed after it then ends the wait.
        const std::uint32_t ticket = timeout_ms != 0 ? freed_.prepare() : 0;
        int error = 0;
        bool taken = false;
        bool again = false;
        switch (try_allocate(wanted, block)) {
        case attempt::done:
            break;
        case attempt::closed:
            error = closed_error();
            break;
        case attempt::no_room:
            error = make_room(wanted, block, taken);
            again = error == 0 && !taken && attempts < most_attempts;
            if (error == 0 && !taken && !again) {
                error = fail_static(ENOMEM, "other threads take each block that gets free");
            }
            break;
        }
        const bool waits = timeout_ms != 0 && may_pass(error);
        if (waits && caching.stop(*this)) {
            again = true;
        }
        if (again || !waits) {
            if (timeout_ms != 0) {
                freed_.cancel();
            }
            if (again) {
                continue;
            }
            return error;
        }
        if (event_count::clock::now() >= deadline) {
            freed_.cancel();
            return fail(ETIMEDOUT, "no block of %zu bytes was freed within %d ms: %s", wanted.bytes,
                        timeout_ms, last_message());
        }
        freed_.wait(ticket, deadline);
        attempts = 0;
    }
}

/// After an attempt found no room: 0 if the block is taken now or another attempt is worth it.
int pool::make_room(const request& wanted, void*& block, bool& taken) noexcept {
    release_idle_spans();
    int error = 0;
    {
        const std::lock_guard guard(growth_);
        if (!is_open()) {
            return closed_error();
        }
        // Else another thread grew the pool, or idle spans were enough.
        if (!pages_.has_room(wanted.pages, wanted.align)) {
            error = grow(wanted.pages * page_bytes);
        }
        if (error == 0) {
            // Under the lock, without which trim() could give the slab back before.
            taken = try_allocate(wanted, block) == attempt::done;
            return 0;
        }
        // What other threads keep is taken only where the pool cannot grow: a fence in all
        // threads is dear. Under the lock, without which trim() could make room for a slab
        // after grow() found none.
        taken = may_pass(error) && take_what_is_kept(wanted, block);
    }
    if (taken) {
        give_out(block, wanted.is_large() ? wanted.pages * page_bytes
                                          : size_classes[wanted.class_index].bytes);
        return 0;
    }
    return error;
}

/// With all that is free behind the caches, and where no cache can take it meanwhile. False:
/// there is no room, all is out. growth_ is held and the pool open, so it cannot have drained.
bool pool::take_what_is_kept(const request& wanted, void*& block) noexcept {
    const emptied_caches emptied(*this);
    for (const bool idle_too : {false, true}) {
        if (idle_too) {
            release_idle_spans();
        }
        if (wanted.is_large()) {
            std::uint32_t first = no_page;
            if (pages_.take_large(wanted.pages, wanted.align, first) == page_heap::result::done) {
                block = pages_.page_address(first);
                return true;
            }
            continue;
        }
        cached_block one{};
        if (take_behind(wanted.class_index, &one, 1) != 0) {
            block_states::set_live(one);
            block = one.block;
            return true;
        }
    }
    return false;
}

/// Takes the blocks out of all threads' caches.
void pool::reclaim_all() noexcept {
    if (reclaim()) {
        finish_drain();
    }
}

void pool::release_idle_spans() noexcept {
    arenas_.release_idle();
}

/// Up to n blocks of a class: from the calling thread's cache, then from the heap behind.
std::size_t pool::take_many(std::size_t class_index, void** blocks, std::size_t n) noexcept {
    std::size_t got = 0;
    if (block_cache* const mine = cache(class_index); mine != nullptr) {
        while (got < n && mine->take<false>(blocks[got], block_states::live_state)) {
            annotate_live(blocks[got++], size_classes[class_index].bytes);
        }
    }
    std::array<cached_block, 64> batch;
    while (got < n) {
        const std::size_t wanted = std::min(n - got, batch.size());
        const std::size_t more = take_past_cache(class_index, batch.data(), wanted);
        for (std::size_t index = 0; index < more; ++index) {
            block_states::set_live(batch[index]);
            blocks[got] = batch[index].block;
            give_out(blocks[got++], size_classes[class_index].bytes);
        }
        if (more != wanted) {
            break;
        }
    }
    return got;
}

std::size_t pool::take_behind(std::size_t kind, cached_block* blocks, std::size_t n) noexcept {
    const void* twice = nullptr;
    const std::size_t got = arenas_.take(arena(), kind, blocks, n, twice);
    if (twice != nullptr) {
        report_twice(twice);
    }
    return got;
}

void pool::hand_out(cached_block* /*bottom*/, cached_block* top) noexcept {
    block_states::set_live(top[-1]);
}

int pool::allocate_n(std::size_t bytes, void** blocks, std::size_t n) noexcept {
    request wanted{};
    int result = plan(bytes, 0, wanted);
    if (result == 0 && wanted.bytes != 0 && n > options_.maximum / wanted.bytes) {
        result = fail(ENOMEM, "%zu blocks of %zu bytes are more than the pool's maximum of %s", n,
                      bytes, size_text(options_.maximum).c_str());
    }
    std::size_t got = 0;
    while (result == 0 && got < n) {
        if (!wanted.is_large()) {
            got += take_many(wanted.class_index, blocks + got, n - got);
            if (got == n) {
                break;
            }
        }
        result = allocate_slowly(wanted, 0, blocks[got]);
        got += result == 0 ? 1 : 0;
    }
    if (result != 0) {
        for (std::size_t index = 0; index < got; ++index) {
            give_back(blocks[index], &wanted);
        }
        std::fill_n(blocks, got, nullptr);
    }
    return result;
}

} // namespace hcamem::core
