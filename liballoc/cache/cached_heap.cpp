// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cache/cached_heap.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <sys/mman.h>

#include "os/mapping.h"
#include "os/membarrier.h"
#include "os/process.h"

namespace hcamem::core {
namespace {

std::uint32_t next_heap_id() noexcept {
    static std::atomic<std::uint32_t> last{0};
    std::uint32_t id = last.load(std::memory_order_relaxed);
    do {
        if (id + 1 >= detail::max_heaps) {
            return 0;
        }
    } while (!last.compare_exchange_weak(id, id + 1, std::memory_order_relaxed));
    return id + 1;
}

/// One more than fits: a block is put in first, and the limit looked at afterwards.
constexpr std::size_t room_of(std::size_t capacity) noexcept {
    return capacity + 1;
}

/// Blocks in a cache; exact if its owner does nothing.
std::size_t count(const block_cache& cache) noexcept {
    const std::int32_t bottom = cache.bottom.load(std::memory_order_relaxed);
    const std::int32_t top = cache.top.load(std::memory_order_relaxed);
    return static_cast<std::size_t>(std::max(top - bottom, 0));
}

} // namespace

cached_heap::cached_heap() noexcept : id_(next_heap_id()) {}

void cached_heap::open_caches(std::span<const std::uint16_t> capacities) noexcept {
    const bool fences = register_membarrier();
    const std::lock_guard guard(enter_process()->caches);
    sets_ = nullptr;
    stopped_.store(0, std::memory_order_relaxed);
    capacities_ = fences && id_ != 0 ? capacities : std::span<const std::uint16_t>{};
}

void cached_heap::end_caches() noexcept {
    const std::lock_guard guard(enter_process()->caches);
    capacities_ = {};
    while (sets_ != nullptr) {
        cache_set& ended = *sets_;
        unlink(ended);
        munmap(&ended, ended.bytes);
    }
}

void cached_heap::end_set(cache_set& ended) noexcept {
    {
        const std::lock_guard guard(ended.lock);
        for (std::uint32_t kind = 0; kind < ended.count; ++kind) {
            block_cache& cache = ended.caches[kind];
            compact(cache);
            if (const std::size_t blocks = count(cache); blocks != 0) {
                // A closed heap's caches are empty, so this does not end one.
                static_cast<void>(ended.heap->put_behind(kind, cache.blocks, blocks));
            }
        }
    }
    unlink(ended);
    munmap(&ended, ended.bytes);
}

void cached_heap::unlink(cache_set& ended) noexcept {
    ended.owner->caches.of[ended.heap->id_].store(nullptr, std::memory_order_relaxed);
    cache_set** link = &ended.heap->sets_;
    while (*link != &ended) {
        link = &(*link)->next_of_heap;
    }
    *link = ended.next_of_heap;
    link = &ended.owner->sets;
    while (*link != &ended) {
        link = &(*link)->next_of_thread;
    }
    *link = ended.next_of_thread;
}

cache_set& cached_heap::set_of(block_cache* first) noexcept {
    return *reinterpret_cast<cache_set*>(reinterpret_cast<std::byte*>(first) -
                                         offsetof(cache_set, caches));
}

cache_set* cached_heap::my_set() noexcept {
    block_cache* const first = cache(0);
    return first != nullptr ? &set_of(first) : make_set();
}

cache_set* cached_heap::make_set() noexcept {
    thread_state* const owner = id_ != 0 ? enter_thread() : nullptr;
    if (owner == nullptr) {
        return nullptr;
    }
    const std::lock_guard guard(enter_process()->caches);
    if (capacities_.empty()) {
        return nullptr;
    }
    std::size_t room = 0;
    for (const std::uint16_t capacity : capacities_) {
        room += room_of(capacity);
    }
    const std::size_t head = offsetof(cache_set, caches) + capacities_.size() * sizeof(block_cache);
    const std::size_t bytes = head + room * sizeof(cached_block);
    void* const memory = map_wiped(bytes);
    if (memory == nullptr) {
        return nullptr;
    }
    auto* const made = new (memory) cache_set;
    auto* blocks = reinterpret_cast<cached_block*>(static_cast<std::byte*>(memory) + head);
    for (std::size_t kind = 0; kind < capacities_.size(); ++kind) {
        block_cache& cache = *new (&made->caches[kind]) block_cache;
        cache.capacity = capacities_[kind];
        cache.limit.store(limit(cache), std::memory_order_relaxed);
        cache.blocks = blocks;
        blocks += room_of(capacities_[kind]);
    }
    made->heap = this;
    made->owner = owner;
    made->bytes = bytes;
    made->count = static_cast<std::uint32_t>(capacities_.size());
    made->next_of_heap = sets_;
    sets_ = made;
    made->next_of_thread = owner->sets;
    owner->sets = made;
    owner->caches.of[id_].store(&made->caches[0], std::memory_order_relaxed);
    return made;
}

/// Moves the blocks down to where others have taken some away. The set's lock is held.
void cached_heap::compact(block_cache& cache) noexcept {
    const std::int32_t bottom = cache.bottom.load(std::memory_order_relaxed);
    if (bottom == 0) {
        return;
    }
    const std::int32_t top = cache.top.load(std::memory_order_relaxed);
    std::memmove(cache.blocks, cache.blocks + bottom,
                 static_cast<std::size_t>(top - bottom) * sizeof(cached_block));
    cache.top.store(top - bottom, std::memory_order_release);
    cache.bottom.store(0, std::memory_order_relaxed);
}

bool cached_heap::refill(std::size_t kind, cached_block& taken) noexcept {
    cache_set* const set = my_set();
    if (set == nullptr) {
        return take_behind(kind, &taken, 1) == 1;
    }
    const std::lock_guard guard(set->lock);
    block_cache& cache = set->caches[kind];
    compact(cache);
    cache.limit.store(limit(cache), std::memory_order_relaxed);
    auto have = static_cast<std::size_t>(cache.top.load(std::memory_order_relaxed));
    while (have != 0 && cache.blocks[have - 1].is_live()) {
        report_twice(cache.blocks[--have].block);
    }
    cache.top.store(static_cast<std::int32_t>(have), std::memory_order_relaxed);
    if (have == 0) { // else who wanted to take some away has thought better of it
        const auto wanted =
            static_cast<std::size_t>(std::max(cache.limit.load(std::memory_order_relaxed) / 2, 1));
        have = take_behind(kind, cache.blocks, wanted);
    }
    if (have == 0) {
        return false;
    }
    taken = cache.blocks[have - 1];
    cache.top.store(static_cast<std::int32_t>(have - 1), std::memory_order_release);
    return true;
}

bool cached_heap::put_slowly(std::size_t kind, const cached_block& block) noexcept {
    cache_set* const set = my_set();
    if (set == nullptr) {
        return put_behind(kind, &block, 1);
    }
    return !set->caches[kind].put(block) && spill(kind);
}

bool cached_heap::spill(std::size_t kind) noexcept {
    cache_set& set = set_of(cache(0));
    const std::lock_guard guard(set.lock);
    block_cache& cache = set.caches[kind];
    compact(cache);
    const std::int32_t most = limit(cache);
    cache.limit.store(most, std::memory_order_relaxed);
    const std::int32_t have = cache.top.load(std::memory_order_relaxed);
    if (have <= most) {
        return false;
    }
    // The oldest, which are the coldest.
    const std::int32_t keep = most / 2;
    const auto spilled = static_cast<std::size_t>(have - keep);
    const bool drained = put_behind(kind, cache.blocks, spilled);
    std::memmove(cache.blocks, cache.blocks + spilled,
                 static_cast<std::size_t>(keep) * sizeof(cached_block));
    cache.top.store(keep, std::memory_order_release);
    return drained;
}

std::size_t cached_heap::reclaim(bool& drained) noexcept {
    drained = false;
    const std::lock_guard guard(enter_process()->caches);
    bool any = false;
    for (cache_set* set = sets_; set != nullptr; set = set->next_of_heap) {
        for (std::uint32_t kind = 0; !any && kind < set->count; ++kind) {
            any = count(set->caches[kind]) != 0;
        }
    }
    if (!any) {
        return 0; // not worth a fence in all threads
    }
    // One set after the other is locked, and all stay locked over the one fence.
    for (cache_set* set = sets_; set != nullptr; set = set->next_of_heap) {
        set->lock.lock();
        for (std::uint32_t kind = 0; kind < set->count; ++kind) {
            block_cache& cache = set->caches[kind];
            cache.taken_from = cache.bottom.load(std::memory_order_relaxed);
            cache.bottom.store(
                std::max(cache.top.load(std::memory_order_relaxed), cache.taken_from),
                detail::owner_order);
        }
    }
    membarrier();
    std::size_t taken = 0;
    for (cache_set* set = sets_; set != nullptr; set = set->next_of_heap) {
        for (std::uint32_t kind = 0; kind < set->count; ++kind) {
            taken += take_away(kind, set->caches[kind], drained);
        }
        set->lock.unlock();
    }
    return taken;
}

/// After the bottom was raised and the fence: below the owner's top all is ours. What lies
/// between that and the bottom the owner has taken, or will find there after all.
std::size_t cached_heap::take_away(std::size_t kind, block_cache& cache, bool& drained) noexcept {
    const std::int32_t end = std::clamp(cache.top.load(detail::other_order), cache.taken_from,
                                        cache.bottom.load(std::memory_order_relaxed));
    cache.bottom.store(end, std::memory_order_release);
    if (end == cache.taken_from) {
        return 0;
    }
    const auto taken = static_cast<std::size_t>(end - cache.taken_from);
    drained = put_behind(kind, cache.blocks + cache.taken_from, taken) || drained;
    return taken;
}

void cached_heap::stop_caching() noexcept {
    const std::lock_guard guard(enter_process()->caches);
    stopped_.fetch_add(1, std::memory_order_relaxed);
    for (cache_set* set = sets_; set != nullptr; set = set->next_of_heap) {
        const std::lock_guard set_guard(set->lock);
        for (std::uint32_t kind = 0; kind < set->count; ++kind) {
            set->caches[kind].limit.store(0, detail::owner_order);
        }
    }
    if (sets_ != nullptr) {
        membarrier(); // who still went by the old limit has its block in the cache now
    }
}

void cached_heap::resume_caching() noexcept {
    // A cache's owner raises its limit again when it meets it. 0: the heap has ended since.
    const std::lock_guard guard(enter_process()->caches);
    const std::uint32_t before = stopped_.load(std::memory_order_relaxed);
    stopped_.store(before == 0 ? 0 : before - 1, std::memory_order_relaxed);
}

void cached_heap::count_cached(std::span<std::size_t> by_kind) noexcept {
    std::fill(by_kind.begin(), by_kind.end(), 0);
    const std::lock_guard guard(enter_process()->caches);
    for (const cache_set* set = sets_; set != nullptr; set = set->next_of_heap) {
        for (std::size_t kind = 0; kind < by_kind.size(); ++kind) {
            by_kind[kind] += count(set->caches[kind]);
        }
    }
}

} // namespace hcamem::core
