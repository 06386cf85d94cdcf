// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A pool: slabs from a source, blocks from the slabs, registrations of the slabs.
//
// Locks, in the order in which they may be taken:
//   pressure_               the watch for memory pressure and its thread
//   growth_                 slabs, bindings, state changes; held over system calls and verbs
//   process_page::caches    which threads have caches; a cache_set's lock
//   a class_heap's lock     blocks of one size class in one arena; several only of one class
//   the page_heap's lock    pages of slabs
// A block's owner takes no lock to look up its keys or its span, and none to allocate or
// free where its thread's cache has a block or room. An allocation that finds a free block
// waits for nobody's system call.
//
// Life:  dead -> open -> draining -> drained -> dead
// close() turns open into draining. Blocks that are live then are counted, and the
// free that returns the last of them releases the slabs. Without live blocks close()
// goes from open to dead. A dead or drained pool without bindings is an idle handle.
#ifndef HCAMEM_POOL_POOL_H
#define HCAMEM_POOL_POOL_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include <hcamem.h>

#include "cache/cached_heap.h"
#include "check/block_checks.h"
#include "heap/annotate.h"
#include "heap/arenas.h"
#include "heap/block_states.h"
#include "heap/page_heap.h"
#include "os/event_count.h"
#include "os/file.h"
#include "os/mapping.h"
#include "pool/binding.h"
#include "pool/handles.h"
#include "pool/slab_table.h"
#include "pressure/pressure_watch.h"
#include "source/source.h"
#include "verbs/registrar.h"

namespace hcamem::core {

class pool : public handle<pool>, public binding_owner, private cached_heap {
  public:
    // -- the fast path: what the calling thread's cache can do --
    /// False: take_any_cached() must see to it.
    [[nodiscard, gnu::always_inline]] inline bool take_cached(std::size_t bytes, std::size_t align,
                                                              void*& block) noexcept {
        return is_quick(bytes, align) && take_from(cache(0), quick_cache_offset(bytes), block);
    }
    /// The same for whatever has a size class. False: allocate() must see to it.
    [[nodiscard]] bool take_any_cached(std::size_t bytes, std::size_t align,
                                       void*& block) noexcept {
        cache_offset where = 0;
        return find_cache_offset(bytes, align, where) && take_from(cache(0), where, block);
    }
    /// For a block that must be one of allocate(bytes, align).
    [[nodiscard, gnu::always_inline]] inline bool put_cached_sized(void* block, std::size_t bytes,
                                                                   std::size_t align) noexcept {
        return is_quick(bytes, align) && put_into(cache(0), block, [bytes](cache_offset where) {
                   return where == quick_cache_offset(bytes);
               });
    }
    [[nodiscard]] bool put_any_cached_sized(void* block, std::size_t bytes,
                                            std::size_t align) noexcept {
        cache_offset expected = 0;
        return find_cache_offset(bytes, align, expected) &&
               put_into(cache(0), block,
                        [expected](cache_offset where) { return where == expected; });
    }

    /// False: deallocate() must see to it.
    [[nodiscard, gnu::always_inline]] inline bool put_cached(void* block) noexcept {
        return put_into(cache(0), block, [](cache_offset /*where*/) { return true; });
    }

    // -- life: lifetime.cpp --
    /// 0, or -errno with a message and the pool dead.
    int open(const hcamem_options& options, std::unique_ptr<source> from,
             std::uint64_t generation) noexcept;
    int close() noexcept;

    /// Whether the pool belongs to another process, of which this one is a child.
    [[nodiscard]] bool inherited() const noexcept {
        return generation_.load(std::memory_order_relaxed) != process_generation();
    }
    [[nodiscard]] bool is_dead() const noexcept {
        return state_.load(std::memory_order_relaxed) == state::dead;
    }
    [[nodiscard]] bool is_open() const noexcept {
        return state_.load(std::memory_order_relaxed) == state::open;
    }
    [[nodiscard]] bool misuse_is_error() const noexcept { return misuse_is_error_; }
    [[nodiscard]] const block_checks& checks() const noexcept { return checks_; }
    [[nodiscard]] bool reports_leaks() const noexcept {
        return (options_.flags & (HCAMEM_OPT_LEAKS | HCAMEM_OPT_LEAK_STACKS)) != 0;
    }
    /// A block leaves the heap: AddressSanitizer is told, and the checks, for which it is
    /// misuse if it was written to while it was free.
    void give_out(void* block, std::size_t bytes) const noexcept;
    [[nodiscard]] bool dmabuf_only() const noexcept {
        return (options_.flags & HCAMEM_OPT_DMABUF_ONLY) != 0;
    }

    // -- blocks: allocate.cpp, deallocate.cpp --
    int allocate(std::size_t bytes, std::size_t align, int timeout_ms, void*& block) noexcept;
    int allocate_n(std::size_t bytes, void** blocks, std::size_t n) noexcept;
    int deallocate(void* block) noexcept;
    int deallocate_sized(void* block, std::size_t bytes, std::size_t align) noexcept;

    // -- registration: registration.cpp --
    int attach(std::unique_ptr<registrar> with, binding*& made);
    int detach(binding& ended) noexcept override;

    // -- slabs: growth.cpp, trim.cpp --
    std::uint64_t trim(std::uint64_t keep) noexcept;

    // -- memory pressure: relieve.cpp --
    int event_fd();
    int next_pressure(hcamem_pressure& taken) noexcept;
    /// Takes what next_pressure() has and gives back as much; the bytes.
    std::uint64_t relieve() noexcept;

    // -- questions: query.cpp --
    [[nodiscard]] std::size_t usable(const void* block) noexcept;
    [[nodiscard]] bool owns(const void* address) const noexcept;
    [[nodiscard]] std::uint32_t source_kind() const noexcept { return source_kind_; }
    void stats(hcamem_stats& now) noexcept;
    int export_dmabuf(const void* address, std::size_t bytes, std::uint64_t& offset) noexcept;
    /// Whether the range is not empty and lies in one slab.
    [[nodiscard]] bool in_one_slab(const void* address, std::size_t bytes) const noexcept;
    /// What a registrar needs of the memory of a live block.
    [[nodiscard]] exporter& memory() noexcept { return *source_; }

  private:
    enum class state : std::uint8_t { dead, open, draining, drained };

    /// Where a request is served from.
    struct request {
        std::size_t class_index; // class_count: a large block
        std::size_t pages;       // of a large block, or of a span of the class
        std::size_t align;       // of a large block
        std::size_t bytes;       // that were asked for

        [[nodiscard]] bool is_large() const noexcept { return class_index == class_count; }
    };
    enum class attempt : std::uint8_t { done, no_room, closed };

    int plan(std::size_t bytes, std::size_t align, request& made) const noexcept;
    attempt try_allocate(const request& wanted, void*& block) noexcept;
    class caching_stopped;
    int allocate_slowly(const request& wanted, int timeout_ms, void*& block) noexcept;
    std::size_t take_many(std::size_t class_index, void** blocks, std::size_t n) noexcept;
    int make_room(const request& wanted, void*& block, bool& taken) noexcept;
    static int closed_error() noexcept;

    int give_back(void* block, const request* expected) noexcept;
    verdict put(void* block, const request* expected) noexcept;
    int report(verdict what, const void* block, const request* expected) const noexcept;
    static bool is_quick(std::size_t bytes, std::size_t align) noexcept {
        return (align & ~min_align) == 0 && bytes - 1 < quick_bytes;
    }
    [[gnu::always_inline]] static inline bool take_from(block_cache* mine, cache_offset where,
                                                        void*& block) noexcept {
        if (mine == nullptr || !cache_at(mine, where).take<false>(block, block_states::live_state))
            [[unlikely]] {
            return false;
        }
        annotate_live(block, size_classes[class_at(where)].bytes);
        return true;
    }
    /// Puts a live block into a cache of the calling thread's. `is_right`: whether it is one
    /// of that cache.
    template <class IsRight>
    [[gnu::always_inline]] inline bool put_into(block_cache* mine, void* block,
                                                IsRight is_right) noexcept {
        cached_block freed{block, nullptr};
        cache_offset where; // NOLINT(cppcoreguidelines-init-variables): set_free() does
        if (mine == nullptr || !states_.set_free(block, freed.state, where, is_right))
            [[unlikely]] {
            return false;
        }
        annotate_free(block, size_classes[class_at(where)].bytes);
        if (!cache_at(mine, where).put(freed)) [[unlikely]] {
            spill_class(class_at(where));
        }
        return true;
    }
    void report_leaks(std::uint64_t live) noexcept;
    bool take_what_is_kept(const request& wanted, void*& block) noexcept;
    void reclaim_all() noexcept;
    void spill_class(std::size_t class_index) noexcept;
    bool is_last(std::uint64_t blocks, bool drains) noexcept;
    std::size_t take_behind(std::size_t kind, cached_block* blocks,
                            std::size_t n) noexcept override;
    void hand_out(cached_block* bottom, cached_block* top) noexcept override;
    bool put_behind(std::size_t kind, const cached_block* blocks, std::size_t n) noexcept override;
    void report_twice(const void* block) noexcept override;

    int open_memory(const hcamem_options& options, std::unique_ptr<source> from,
                    std::uint64_t generation) noexcept;
    int start(const hcamem_options& options) noexcept;
    void finish_drain() noexcept;
    void release_slabs() noexcept;
    void retire_handle() noexcept;

    int grow(std::size_t bytes) noexcept;
    int add_slab(std::size_t bytes) noexcept;
    int register_slab(const slab& added) noexcept;
    int deregister_slab(const slab& removed) noexcept;
    int end_binding(binding& ended) noexcept;
    void release_idle_spans() noexcept;
    std::uint64_t give_back_idle(std::uint64_t wanted, std::uint64_t keep) noexcept;
    bool give_back_slab(const slab& idle) noexcept;

    int open_watch();
    int start_reliever() noexcept;
    void relieve_until(int events, int stop) noexcept;
    void end_pressure() noexcept;

    [[nodiscard]] std::byte* address_of(const slab& which) const noexcept {
        return range_.data() + which.unit * slab_unit;
    }

    // Read by every call, written at open() only.
    std::atomic<std::uint64_t> generation_{0};
    std::atomic<state> state_{state::dead};
    bool misuse_is_error_ = false;
    std::uint32_t source_kind_ = HCAMEM_MEMORY;
    hcamem_options options_{};
    std::unique_ptr<source> source_;

    block_states states_; // of blocks of size classes
    block_checks checks_;

    arenas arenas_;
    page_heap pages_;

    alignas(64) event_count freed_;

    // Blocks to be freed until the slabs can go, counted once the pool drains, and
    // open_reference until close() has counted them.
    static constexpr std::uint64_t open_reference = std::uint64_t{1} << 60;
    alignas(64) std::atomic<std::uint64_t> references_{0};

    std::mutex pressure_; // guards the three below
    std::unique_ptr<pressure_watch> watch_;
    file stop_relieving_; // an eventfd
    std::thread reliever_;

    alignas(64) std::mutex growth_; // guards all below
    mapping range_;
    slab_table slabs_;
    binding* bindings_ = nullptr;
    bool memory_held_ = false; // a slab could not be deregistered when the pool drained
};

} // namespace hcamem::core

#endif
