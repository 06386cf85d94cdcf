// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cache/thread.h"

#include <atomic>

#include <pthread.h>
#include <sys/mman.h>

#include "cache/cached_heap.h"
#include "os/mapping.h"
#include "os/process.h"

namespace {

// Of a thread that has no caches. Never written.
hcamem::detail::thread_caches no_caches;

} // namespace

extern "C" {
[[gnu::visibility("default"),
  gnu::tls_model("initial-exec")]] __thread hcamem::detail::thread_caches* hcamem_thread_2 =
    &no_caches;
}

namespace hcamem::core {
namespace {

/// Runs when a thread ends. Other destructors may free blocks before it and after it: the
/// latter make a new state, and so another round.
void leave_thread(void* left) noexcept {
    auto* const state = static_cast<thread_state*>(left);
    hcamem_thread_2 = &no_caches;
    if (state->entered) {
        const std::lock_guard guard(enter_process()->caches);
        while (state->sets != nullptr) {
            cached_heap::end_set(*state->sets);
        }
    }
    munmap(state, sizeof *state);
}

/// The key whose destructor is leave_thread(); false: the process has no more keys.
bool exit_key(pthread_key_t& key) noexcept {
    static std::atomic<int> made{-1};
    int have = made.load(std::memory_order_acquire);
    if (have < 0) {
        pthread_key_t fresh{};
        if (pthread_key_create(&fresh, leave_thread) != 0) {
            return false;
        }
        if (made.compare_exchange_strong(have, static_cast<int>(fresh),
                                         std::memory_order_acq_rel)) {
            have = static_cast<int>(fresh);
        } else {
            pthread_key_delete(fresh);
        }
    }
    key = static_cast<pthread_key_t>(have);
    return true;
}

} // namespace

thread_state* enter_thread() noexcept {
    auto* state = reinterpret_cast<thread_state*>(hcamem_thread_2);
    if (hcamem_thread_2 != &no_caches) {
        state->entered = true; // also in a child, where it was zeroed
        return state;
    }
    pthread_key_t key{};
    if (!exit_key(key)) {
        return nullptr;
    }
    void* const memory = map_wiped(sizeof(thread_state));
    if (memory == nullptr) {
        return nullptr;
    }
    if (pthread_setspecific(key, memory) != 0) {
        munmap(memory, sizeof(thread_state));
        return nullptr;
    }
    state = static_cast<thread_state*>(memory);
    state->entered = true;
    hcamem_thread_2 = &state->caches;
    return state;
}

} // namespace hcamem::core
