// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A mutex that is held for less than it takes to sleep and be woken: who finds it locked
// spins for a moment first.
#ifndef HCAMEM_OS_SHORT_MUTEX_H
#define HCAMEM_OS_SHORT_MUTEX_H

#include <pthread.h>

namespace hcamem::core {

/// As std::mutex.
class short_mutex {
  public:
    short_mutex() noexcept = default;
    short_mutex(const short_mutex&) = delete;
    short_mutex& operator=(const short_mutex&) = delete;
    ~short_mutex() = default;

    void lock() noexcept { pthread_mutex_lock(&mutex_); }
    [[nodiscard]] bool try_lock() noexcept { return pthread_mutex_trylock(&mutex_) == 0; }
    void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

  private:
    pthread_mutex_t mutex_ = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
};

} // namespace hcamem::core

#endif
