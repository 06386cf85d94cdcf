// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Handles are never unmapped, and one that ended is used again only after many
// others: so a call with a dead handle, or one that races with the end of its
// pool, finds a dead object with its locks, and not freed memory.
#ifndef HCAMEM_POOL_HANDLES_H
#define HCAMEM_POOL_HANDLES_H

#include <atomic>
#include <mutex>

#include "os/process.h"

namespace hcamem::core {

inline constexpr std::size_t min_idle_handles = 64;

/// Base of a handle type.
template <class T>
class handle {
  public:
    /// An unused handle: the one that ended first, or a new one. Throws std::bad_alloc.
    static T* take(idle_handles& idle) {
        {
            const std::lock_guard guard(idle.lock);
            if (idle.count >= min_idle_handles) {
                T* const oldest = static_cast<T*>(idle.oldest);
                idle.oldest = oldest->next_idle_;
                --idle.count;
                return oldest;
            }
        }
        T* const made = new T;
        made->next_made_ = last_made.load(std::memory_order_relaxed);
        while (
            !last_made.compare_exchange_weak(made->next_made_, made, std::memory_order_release)) {
        }
        return made;
    }

    static void retire(idle_handles& idle, T* ended) noexcept {
        const std::lock_guard guard(idle.lock);
        ended->next_idle_ = nullptr;
        if (idle.count++ == 0) {
            idle.oldest = ended;
        } else {
            static_cast<T*>(idle.newest)->next_idle_ = ended;
        }
        idle.newest = ended;
    }

  private:
    T* next_idle_ = nullptr;
    T* next_made_ = nullptr;

    // Leak checkers do not look into the process page: this keeps all handles in sight.
    static inline std::atomic<T*> last_made{nullptr};
};

} // namespace hcamem::core

#endif
