// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cache/cached_heap.h"

#include <algorithm>
#include <array>
#include <new>

#include <sys/mman.h>

#include "heap/span.h"
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
    const cached_block* const bottom = cache.bottom.load(std::memory_order_relaxed);
    const cached_block* const top = cache.top.load(std::memory_order_relaxed);
    return top > bottom ? static_cast<std::size_t>(top - bottom) : 0;
}

} // namespace

block_state cached_heap::not_noted_state{1};

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
            move_down(ended, kind, cache.bottom.load(std::memory_order_relaxed));
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
    const std::size_t bytes =
        head + room * sizeof(cached_block) + 2 * capacities_.size() * sizeof(cached_block*);
    void* const memory = map_wiped(bytes);
    if (memory == nullptr) {
        return nullptr;
    }
    auto* const made = new (memory) cache_set;
    auto* blocks = reinterpret_cast<cached_block*>(static_cast<std::byte*>(memory) + head);
    for (std::size_t kind = 0; kind < capacities_.size(); ++kind) {
        block_cache& cache = *new (&made->caches[kind]) block_cache;
        cache.blocks = blocks;
        cache.bottom.store(blocks, std::memory_order_relaxed);
        cache.top.store(blocks, std::memory_order_relaxed);
        cache.limit.store(blocks + limit(kind), std::memory_order_relaxed);
        blocks += room_of(capacities_[kind]);
    }
    made->taken_from = reinterpret_cast<cached_block**>(blocks);
    made->noted_end = made->taken_from + capacities_.size();
    for (std::size_t kind = 0; kind < capacities_.size(); ++kind) {
        made->noted_end[kind] = made->caches[kind].blocks;
    }
    made->heap = this;
    made->owner = owner;
    made->bytes = bytes;
    made->count = static_cast<std::uint32_t>(capacities_.size());
    made->arena = least_used_arena();
    made->next_of_heap = sets_;
    sets_ = made;
    made->next_of_thread = owner->sets;
    owner->sets = made;
    owner->caches.of[id_].store(&made->caches[0], std::memory_order_relaxed);
    return made;
}

/// process_page::caches is held.
std::uint32_t cached_heap::least_used_arena() const noexcept {
    std::array<std::size_t, arena_count> users{};
    for (const cache_set* set = sets_; set != nullptr; set = set->next_of_heap) {
        ++users[set->arena];
    }
    return static_cast<std::uint32_t>(std::ranges::min_element(users) - users.begin());
}

/// Moves the blocks from there on down to where others are gone. The set's lock is held.
void cached_heap::move_down(cache_set& set, std::size_t kind, const cached_block* from) noexcept {
    block_cache& cache = set.caches[kind];
    if (from == cache.blocks) {
        return;
    }
    cached_block* const end = std::copy<const cached_block*>(
        from, cache.top.load(std::memory_order_relaxed), cache.blocks);
    cached_block*& noted_end = set.noted_end[kind];
    noted_end = cache.blocks + std::max<std::ptrdiff_t>(noted_end - from, 0);
    cache.top.store(end, std::memory_order_release);
    cache.bottom.store(cache.blocks, std::memory_order_relaxed);
}

bool cached_heap::refill(std::size_t kind, void*& block) noexcept {
    cache_set* const set = my_set();
    if (set == nullptr) {
        cached_block one{};
        if (take_behind(kind, &one, 1) == 0) {
            return false;
        }
        hand_out(&one, &one + 1);
        block = one.block;
        return true;
    }
    const std::lock_guard guard(set->lock);
    block_cache& cache = set->caches[kind];
    move_down(*set, kind, cache.bottom.load(std::memory_order_relaxed));
    const std::size_t most = limit(kind);
    cache.limit.store(cache.blocks + most, std::memory_order_relaxed);
    cached_block* top = cache.top.load(std::memory_order_relaxed);
    while (top != cache.blocks && is_twice(top[-1])) {
        report_twice((--top)->block);
    }
    if (top == cache.blocks) {
        top += take_behind(kind, cache.blocks, std::max<std::size_t>(most / 2, 1));
    }
    if (top == cache.blocks) {
        cache.top.store(top, std::memory_order_relaxed);
        return false;
    }
    hand_out(cache.blocks, top);
    block = (--top)->block;
    set->noted_end[kind] = top;
    cache.top.store(top, std::memory_order_release);
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
    move_down(set, kind, cache.bottom.load(std::memory_order_relaxed));
    const std::size_t most = limit(kind);
    cache.limit.store(cache.blocks + most, std::memory_order_relaxed);
    const std::size_t have = count(cache);
    if (have <= most) {
        return false;
    }
    // The oldest, which are the coldest.
    const std::size_t keep = most / 2;
    const std::size_t spilled = have - keep;
    const bool drained = put_behind(kind, cache.blocks, spilled);
    move_down(set, kind, cache.blocks + spilled);
    return drained;
}

bool cached_heap::is_noted(std::size_t kind, const void* block) const noexcept {
    block_cache* const first = cache(0);
    if (first == nullptr) {
        return false;
    }
    const cached_block* const noted_end = set_of(first).noted_end[kind];
    const block_cache& mine = first[kind];
    const cached_block* const end =
        std::min<const cached_block*>(noted_end, mine.top.load(std::memory_order_relaxed));
    const cached_block* const begin =
        std::max<const cached_block*>(mine.bottom.load(std::memory_order_relaxed),
                                      noted_end - std::min(most_noted, noted_end - mine.blocks));
    return begin < end && std::any_of(begin, end, [block](const cached_block& each) {
               return each.state == nullptr && each.block == block;
           });
}

/// Whether the block was put back twice: this is the second time, and it was given out since.
bool cached_heap::is_twice(const cached_block& top) noexcept {
    return top.state != nullptr && top.state != not_noted() && top.is_live();
}

cached_heap::emptied_caches::emptied_caches(cached_heap& heap) noexcept : heap_(heap) {
    enter_process()->caches.lock();
    for (cache_set* set = heap.sets_; set != nullptr; set = set->next_of_heap) {
        set->lock.lock();
    }
    heap.empty_caches(drained_);
}

cached_heap::emptied_caches::~emptied_caches() {
    for (cache_set* set = heap_.sets_; set != nullptr; set = set->next_of_heap) {
        set->lock.unlock();
    }
    enter_process()->caches.unlock();
}

/// process_page::caches and the locks of all sets are held.
void cached_heap::empty_caches(bool& drained) noexcept {
    bool any = false;
    for (cache_set* set = sets_; set != nullptr; set = set->next_of_heap) {
        for (std::uint32_t kind = 0; !any && kind < set->count; ++kind) {
            any = count(set->caches[kind]) != 0;
        }
    }
    if (!any) {
        return; // not worth a fence in all threads
    }
    for (cache_set* set = sets_; set != nullptr; set = set->next_of_heap) {
        for (std::uint32_t kind = 0; kind < set->count; ++kind) {
            block_cache& cache = set->caches[kind];
            cached_block* const from = cache.bottom.load(std::memory_order_relaxed);
            set->taken_from[kind] = from;
            cache.bottom.store(std::max(cache.top.load(std::memory_order_relaxed), from),
                               detail::owner_order);
        }
    }
    membarrier();
    for (cache_set* set = sets_; set != nullptr; set = set->next_of_heap) {
        for (std::uint32_t kind = 0; kind < set->count; ++kind) {
            drained = take_away(*set, kind) || drained;
        }
    }
}

/// After the bottom was raised and the fence: below the owner's top all is ours. What lies
/// between that and the bottom the owner has taken, or will find there after all. As
/// put_behind().
bool cached_heap::take_away(cache_set& set, std::size_t kind) noexcept {
    block_cache& cache = set.caches[kind];
    cached_block* const from = set.taken_from[kind];
    cached_block* const end = std::clamp(cache.top.load(detail::other_order), from,
                                         cache.bottom.load(std::memory_order_relaxed));
    cache.bottom.store(end, std::memory_order_release);
    return end != from && put_behind(kind, from, static_cast<std::size_t>(end - from));
}

std::size_t cached_heap::take_past_cache(std::size_t kind, cached_block* blocks,
                                         std::size_t n) noexcept {
    cache_set* const set = my_set();
    if (set == nullptr) {
        return take_behind(kind, blocks, n);
    }
    const std::lock_guard guard(set->lock);
    return take_behind(kind, blocks, n);
}

void cached_heap::stop_caching() noexcept {
    const std::lock_guard guard(enter_process()->caches);
    stopped_.fetch_add(1, std::memory_order_relaxed);
    for (cache_set* set = sets_; set != nullptr; set = set->next_of_heap) {
        const std::lock_guard set_guard(set->lock);
        for (std::uint32_t kind = 0; kind < set->count; ++kind) {
            block_cache& cache = set->caches[kind];
            cache.limit.store(cache.blocks, detail::owner_order);
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
