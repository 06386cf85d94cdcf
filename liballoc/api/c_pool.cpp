// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The C interface of pools and blocks. Each call first asks whether the pool is
// this process's, before any lock, then whether it is alive.
#include <cerrno>
#include <memory>
#include <new>

#include <hcamem.h>

#include "api/check.h"
#include "options/options.h"
#include "pool/pool.h"

using namespace hcamem::core;

namespace {

/// Whether a question about the pool can be answered.
bool is_alive(const hcamem_pool* handle) noexcept {
    return handle != nullptr && !to_core(handle)->inherited() && !to_core(handle)->is_dead();
}

int create(const hcamem_options& options, hcamem_pool*& made) {
    process_page* const process = enter_process();
    if (process == nullptr) {
        return fail(ENOMEM, "no memory that a fork child finds zeroed (MADV_WIPEONFORK)");
    }
    std::unique_ptr<source> from;
    int result = open_source(options, from);
    if (result != 0) {
        return result;
    }
    pool* const core = pool::take(process->pools);
    result =
        core->open(options, std::move(from), process->generation.load(std::memory_order_relaxed));
    if (result != 0) {
        pool::retire(process->pools, core);
        return result;
    }
    made = to_handle(core);
    return 0;
}

} // namespace

int hcamem_pool_create(const hcamem_options* options, hcamem_pool** made) {
    if (made == nullptr) {
        return fail_static(EINVAL, "there is nowhere to put the pool: the second argument is NULL");
    }
    try {
        const hcamem_options preset = options_from_environment();
        hcamem_options checked{};
        const int result = read_options(options != nullptr ? *options : preset, checked);
        return result != 0 ? result : create(checked, *made);
    } catch (const std::bad_alloc&) {
        return fail_static(ENOMEM, "no memory to make a pool");
    } catch (...) {
        return fail_static(EIO, "the pool could not be made");
    }
}

int hcamem_pool_close(hcamem_pool* handle) {
    const int result = check(handle);
    if (result != 0) {
        return in_child_done(result);
    }
    return to_core(handle)->close();
}

namespace {

[[gnu::noinline]] void* alloc_slowly(hcamem_pool* handle, size_t bytes, size_t align,
                                     int timeout_ms) noexcept {
    void* block = nullptr;
    if (handle != nullptr && timeout_ms >= -1 &&
        to_core(handle)->take_any_cached(bytes, align, block)) {
        return block;
    }
    int result = check(handle);
    if (result == 0) {
        result = to_core(handle)->allocate(bytes, align, timeout_ms, block);
    }
    if (result != 0) {
        errno = -result;
        return nullptr;
    }
    return block;
}

[[gnu::noinline]] int free_slowly(hcamem_pool* handle, void* block) noexcept {
    if (block == nullptr) {
        return 0;
    }
    const int result = check(handle);
    if (result != 0) {
        return in_child_done(result);
    }
    return to_core(handle)->deallocate(block);
}

[[gnu::noinline]] int free_sized_slowly(hcamem_pool* handle, void* block, size_t bytes,
                                        size_t align) noexcept {
    if (block == nullptr) {
        return 0;
    }
    if (handle != nullptr && to_core(handle)->put_any_cached_sized(block, bytes, align)) {
        return 0;
    }
    const int result = check(handle);
    if (result != 0) {
        return in_child_done(result);
    }
    return to_core(handle)->deallocate_sized(block, bytes, align);
}

} // namespace

// A thread that has a cache for the pool is in the pool's process, and the pool is not dead:
// the caches go with it, and a child finds none.
void* hcamem_alloc(hcamem_pool* handle, size_t bytes, size_t align, int timeout_ms) {
    if (handle != nullptr && timeout_ms >= -1) [[likely]] {
        void* block; // NOLINT(cppcoreguidelines-init-variables): set if it is returned
        if (to_core(handle)->take_cached(bytes, align, block)) [[likely]] {
            return block;
        }
    }
    return alloc_slowly(handle, bytes, align, timeout_ms);
}

int hcamem_alloc_n(hcamem_pool* handle, size_t bytes, void** blocks, size_t n) {
    const int result = check(handle);
    if (result != 0 || n == 0) {
        return result;
    }
    if (blocks == nullptr) {
        return fail_static(EINVAL, "there is nowhere to put the blocks: blocks is NULL");
    }
    return to_core(handle)->allocate_n(bytes, blocks, n);
}

int hcamem_free(hcamem_pool* handle, void* block) {
    if (handle != nullptr && to_core(handle)->put_cached(block)) [[likely]] {
        return 0;
    }
    return free_slowly(handle, block);
}

int hcamem_free_sized(hcamem_pool* handle, void* block, size_t bytes, size_t align) {
    if (handle != nullptr && to_core(handle)->put_cached_sized(block, bytes, align)) [[likely]] {
        return 0;
    }
    return free_sized_slowly(handle, block, bytes, align);
}

int hcamem_free_n(hcamem_pool* handle, void* const* blocks, size_t n) {
    if (n == 0) {
        return 0;
    }
    if (blocks == nullptr) {
        return fail_static(EINVAL, "blocks is NULL");
    }
    int result = 0;
    for (size_t index = 0; index < n; ++index) {
        const int freed = hcamem_free(handle, blocks[index]);
        result = result == 0 ? freed : result;
    }
    return result;
}

size_t hcamem_usable(const hcamem_pool* handle, const void* block) {
    // Asking takes a lock, which the caller's const does not mean.
    return is_alive(handle) ? const_cast<pool*>(to_core(handle))->usable(block) : 0;
}

int hcamem_owns(const hcamem_pool* handle, const void* address) {
    return is_alive(handle) && to_core(handle)->owns(address) ? 1 : 0;
}

int hcamem_source(const hcamem_pool* handle) {
    return handle != nullptr ? static_cast<int>(to_core(handle)->source_kind())
                             : fail_static(EINVAL, "the pool is NULL");
}

int hcamem_closed(const hcamem_pool* handle) {
    return is_alive(handle) && to_core(handle)->is_open() ? 0 : 1;
}

int hcamem_get_stats(const hcamem_pool* handle, hcamem_stats* stats) {
    if (stats == nullptr || stats->size < sizeof *stats) {
        return fail_static(EINVAL, "stats->size must be sizeof(struct hcamem_stats)");
    }
    const int result = check(handle);
    if (result != 0) {
        return result;
    }
    hcamem_stats now{};
    const_cast<pool*>(to_core(handle))->stats(now);
    now.size = stats->size;
    *stats = now;
    return 0;
}

int hcamem_export(hcamem_pool* handle, const void* address, size_t length, uint64_t* offset) {
    const int result = check(handle);
    if (result != 0) {
        return result;
    }
    if (offset == nullptr) {
        return fail_static(EINVAL, "there is nowhere to put the offset: offset is NULL");
    }
    return to_core(handle)->export_dmabuf(address, length, *offset);
}

uint64_t hcamem_trim(hcamem_pool* handle, uint64_t keep) {
    return is_alive(handle) ? to_core(handle)->trim(keep) : 0;
}

int hcamem_event_fd(hcamem_pool* handle) {
    const int result = check(handle);
    if (result != 0) {
        return result;
    }
    try {
        return to_core(handle)->event_fd();
    } catch (const std::bad_alloc&) {
        return fail_static(ENOMEM, "no memory to watch for memory pressure");
    }
}

int hcamem_next_pressure(hcamem_pool* handle, hcamem_pressure* taken) {
    if (taken == nullptr || taken->size < sizeof *taken) {
        return fail_static(EINVAL, "pressure->size must be sizeof(struct hcamem_pressure)");
    }
    const int result = check(handle);
    return result != 0 ? result : to_core(handle)->next_pressure(*taken);
}

uint64_t hcamem_relieve(hcamem_pool* handle) {
    return is_alive(handle) ? to_core(handle)->relieve() : 0;
}
