// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// DPDK's pool of buffers with a cache per thread, as its own programs make it. It runs
// without huge pages, PCI devices and files that other processes could see.
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>

#include <sched.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include "contender.hpp"
#include "patterns/contenders.hpp"

namespace bench {
namespace {

constexpr unsigned cache_size = 256;

/// Starts DPDK's run time. It binds the calling thread, and so those that it starts later, to
/// one processor; that is undone, since nobody else here is bound.
int start() {
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    std::array<std::string, 11> words{
        "bench", "--no-huge", "--no-shconf", "--no-pci",    "--no-telemetry", "-m",
        "1024",  "-l",        "0",           "--log-level", "error"};
    words[8] = std::to_string(sched_getcpu());
    std::array<char*, words.size() + 1> arguments{};
    for (std::size_t index = 0; index < words.size(); ++index) {
        arguments[index] = words[index].data();
    }
    const int result = rte_eal_init(static_cast<int>(words.size()), arguments.data());
    sched_setaffinity(0, sizeof allowed, &allowed);
    return result;
}

void start_once() {
    static const int result = start();
    if (result < 0) {
        throw std::runtime_error(std::string("rte_eal_init: ") + rte_strerror(rte_errno));
    }
}

/// Threads need a number of DPDK's to have a cache.
class registered_thread {
  public:
    registered_thread() : mine_(rte_lcore_id() == LCORE_ID_ANY) {
        if (mine_ && rte_thread_register() != 0) {
            throw std::runtime_error("rte_thread_register() failed");
        }
    }
    registered_thread(const registered_thread&) = delete;
    registered_thread& operator=(const registered_thread&) = delete;
    registered_thread(registered_thread&&) = delete;
    registered_thread& operator=(registered_thread&&) = delete;
    ~registered_thread() {
        if (mine_) {
            rte_thread_unregister();
        }
    }

  private:
    bool mine_;
};

class dpdk_impl {
  public:
    explicit dpdk_impl(const bench_case& what) {
        start_once();
        pool_ =
            rte_mempool_create("bench", fixed_buffers, static_cast<unsigned>(what.bytes),
                               cache_size, 0, nullptr, nullptr, nullptr, nullptr, SOCKET_ID_ANY, 0);
        if (pool_ == nullptr) {
            throw std::runtime_error(std::string("rte_mempool_create: ") + rte_strerror(rte_errno));
        }
    }
    dpdk_impl(const dpdk_impl&) = delete;
    dpdk_impl& operator=(const dpdk_impl&) = delete;
    dpdk_impl(dpdk_impl&&) = delete;
    dpdk_impl& operator=(dpdk_impl&&) = delete;
    ~dpdk_impl() { rte_mempool_free(pool_); }

    class user {
      public:
        explicit user(const dpdk_impl& from) : pool_(from.pool_) {}

        void* get() {
            void* buffer = nullptr;
            return rte_mempool_get(pool_, &buffer) == 0 ? buffer : nullptr;
        }
        void put(void* buffer) { rte_mempool_put(pool_, buffer); }

        void get_n(batch_of_buffers& buffers) {
            if (rte_mempool_get_bulk(pool_, buffers.data(), batch_size) != 0) [[unlikely]] {
                buffers.fill(nullptr);
            }
        }
        void put_n(batch_of_buffers& buffers) {
            rte_mempool_put_bulk(pool_, buffers.data(), batch_size);
        }

      private:
        rte_mempool* pool_;
        registered_thread thread_;
    };

  private:
    rte_mempool* pool_ = nullptr;
};

const registered dpdk("rte_mempool", side::peer, fixed_contender<dpdk_impl>::make);

} // namespace
} // namespace bench
