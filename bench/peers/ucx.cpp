// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// UCX's pool of buffers: not for several threads by itself, and with a spinlock around it.
// Its inlined functions are not in its public headers, so it is called.
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include <pthread.h>
#include <ucs/datastruct/mpool.h>

#include "contender.hpp"
#include "patterns/contenders.hpp"
#include "support/indirect.hpp"

namespace bench {
namespace {

ucs_status_t take_chunk(ucs_mpool_t* /*pool*/, size_t* bytes, void** chunk) {
    *chunk = std::malloc(*bytes);
    return *chunk != nullptr ? UCS_OK : UCS_ERR_NO_MEMORY;
}

void give_chunk(ucs_mpool_t* /*pool*/, void* chunk) {
    std::free(chunk);
}

struct no_lock {
    void lock() {}
    void unlock() {}
};

class spinlock {
  public:
    spinlock() { pthread_spin_init(&lock_, PTHREAD_PROCESS_PRIVATE); }
    void lock() { pthread_spin_lock(&lock_); }
    void unlock() { pthread_spin_unlock(&lock_); }

  private:
    pthread_spinlock_t lock_;
};

template <class Lock>
class ucx_impl {
  public:
    explicit ucx_impl(const bench_case& what) {
        if (ucs_mpool_init(&pool_, 0, what.bytes, 0, cache_line, 128, fixed_buffers, &operations_,
                           "bench") != UCS_OK) {
            throw std::runtime_error("ucs_mpool_init() failed");
        }
    }
    ucx_impl(const ucx_impl&) = delete;
    ucx_impl& operator=(const ucx_impl&) = delete;
    ucx_impl(ucx_impl&&) = delete;
    ucx_impl& operator=(ucx_impl&&) = delete;
    ~ucx_impl() { ucs_mpool_cleanup(&pool_, 0); }

    class user {
      public:
        explicit user(ucx_impl& from) : from_(from) {}

        void* get() {
            from_.lock_.lock();
            void* const buffer = get_(&from_.pool_);
            from_.lock_.unlock();
            return buffer;
        }

        void put(void* buffer) {
            from_.lock_.lock();
            put_(buffer);
            from_.lock_.unlock();
        }

      private:
        ucx_impl& from_;
        void* (*get_)(ucs_mpool_t*) = indirect(&ucs_mpool_get);
        void (*put_)(void*) = indirect(&ucs_mpool_put);
    };

  private:
    ucs_mpool_ops_t operations_{take_chunk, give_chunk, nullptr, nullptr, nullptr};
    ucs_mpool_t pool_{};
    [[no_unique_address]] Lock lock_;
};

std::unique_ptr<contender> make_unlocked(const bench_case& what) {
    return what.threads == 1 ? fixed_contender<ucx_impl<no_lock>>::make(what) : nullptr;
}

const registered unlocked("ucs_mpool, no lock", side::peer, make_unlocked);
const registered locked("ucs_mpool, spinlock", side::peer,
                        fixed_contender<ucx_impl<spinlock>>::make);

} // namespace
} // namespace bench
