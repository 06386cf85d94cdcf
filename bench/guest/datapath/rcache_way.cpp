// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// UCX's registration cache, as its RDMA transport uses it: over any memory of the program, told
// by hooks in munmap() and the like when a registration is no longer good.
#include "datapath/way.hpp"

#ifdef BENCH_HAVE_UCX

#include <cstdlib>
#include <limits>
#include <stdexcept>

#include <infiniband/verbs.h>
#include <sys/mman.h>

extern "C" {
#include <ucm/api/ucm.h>
#include <ucs/memory/rcache.h>
}

#include "support/guest.hpp"

namespace bench {
namespace {

struct region {
    ucs_rcache_region_t super; // first, where UCX looks for it
    ibv_mr* mr;
};

ucs_status_t add_region(void* pd, ucs_rcache_t* /*cache*/, void* /*argument*/,
                        ucs_rcache_region_t* made, std::uint16_t /*flags*/) {
    auto* const mine = reinterpret_cast<region*>(made);
    // UCX has addresses as numbers.
    auto* const start =
        reinterpret_cast<void*>(made->super.start); // NOLINT(performance-no-int-to-ptr)
    mine->mr = ibv_reg_mr(static_cast<ibv_pd*>(pd), start, made->super.end - made->super.start,
                          static_cast<unsigned>(support::remote_access));
    return mine->mr != nullptr ? UCS_OK : UCS_ERR_IO_ERROR;
}

void remove_region(void* /*pd*/, ucs_rcache_t* /*cache*/, ucs_rcache_region_t* ended) {
    ibv_dereg_mr(reinterpret_cast<region*>(ended)->mr);
}

void describe_region(void* /*pd*/, ucs_rcache_t* /*cache*/, ucs_rcache_region_t* /*region*/,
                     char* text, std::size_t size) {
    if (size != 0) {
        *text = '\0';
    }
}

constexpr ucs_rcache_ops_t operations{add_region, remove_region, describe_region};

class rcache {
  public:
    explicit rcache(const support::Pd& pd) {
        ucs_rcache_params_t parameters{};
        parameters.region_struct_size = sizeof(region);
        parameters.alignment = UCS_RCACHE_MIN_ALIGNMENT;
        parameters.max_alignment = support::page_size;
        parameters.ucm_events = UCM_EVENT_VM_UNMAPPED;
        parameters.ucm_event_priority = 1000;
        parameters.ops = &operations;
        parameters.context = pd.get();
        parameters.flags = UCS_RCACHE_FLAG_PURGE_ON_FORK;
        parameters.max_regions = std::numeric_limits<unsigned long>::max();
        parameters.max_size = std::numeric_limits<std::size_t>::max();
        parameters.max_unreleased = std::numeric_limits<std::size_t>::max();
        if (ucs_rcache_create(&parameters, "bench", nullptr, &cache_) != UCS_OK) {
            throw std::runtime_error("ucs_rcache_create() failed");
        }
    }
    rcache(const rcache&) = delete;
    rcache& operator=(const rcache&) = delete;
    rcache(rcache&&) = delete;
    rcache& operator=(rcache&&) = delete;
    ~rcache() { ucs_rcache_destroy(cache_); }

    std::uint32_t get(void* data, std::size_t bytes) {
        if (ucs_rcache_get(cache_, data, bytes, PROT_READ | PROT_WRITE, nullptr, &used_) !=
            UCS_OK) {
            throw std::runtime_error("ucs_rcache_get() failed");
        }
        return reinterpret_cast<region*>(used_)->mr->lkey;
    }
    void put() { ucs_rcache_region_put(cache_, used_); }

  private:
    ucs_rcache_t* cache_ = nullptr;
    ucs_rcache_region_t* used_ = nullptr;
};

constexpr int messages = 256;

// NOLINTBEGIN(cppcoreguidelines-no-malloc): malloc() and free() are what is measured

/// A buffer by malloc() for each message. glibc gives the same one again, so its registration is
/// found in the cache.
class cached_malloc_way final : public way {
  public:
    explicit cached_malloc_way(const support::Pd& pd)
        : way("UCX registration cache, malloc and free", messages), cache_(pd) {}

    void begin(std::size_t bytes) override {
        get(bytes);
        put();
    }
    message_buffer get(std::size_t bytes) override {
        data_ = std::malloc(bytes);
        if (data_ == nullptr) {
            throw std::bad_alloc();
        }
        return {static_cast<std::byte*>(data_), cache_.get(data_, bytes)};
    }
    void put() override {
        cache_.put();
        std::free(data_);
    }
    void end() override {}

  private:
    rcache cache_;
    void* data_ = nullptr;
};

/// The program keeps one buffer: nothing but a hit in the cache.
class cached_hit_way final : public way {
  public:
    explicit cached_hit_way(const support::Pd& pd)
        : way("UCX registration cache, a buffer kept", messages), cache_(pd) {}

    void begin(std::size_t bytes) override {
        data_.reset(std::malloc(bytes));
        if (!data_) {
            throw std::bad_alloc();
        }
        get(bytes);
        put();
    }
    message_buffer get(std::size_t bytes) override {
        return {static_cast<std::byte*>(data_.get()), cache_.get(data_.get(), bytes)};
    }
    void put() override { cache_.put(); }
    void end() override { data_.reset(); }

  private:
    struct freer {
        void operator()(void* data) const { std::free(data); }
    };
    rcache cache_;
    std::unique_ptr<void, freer> data_;
};

// NOLINTEND(cppcoreguidelines-no-malloc)

} // namespace

void add_rcache_ways(ways& all, const support::Pd& pd) {
    all.push_back(std::make_unique<cached_malloc_way>(pd));
    all.push_back(std::make_unique<cached_hit_way>(pd));
}

} // namespace bench

#else

#include <cstdio>

namespace bench {

void add_rcache_ways(ways& /*all*/, const support::Pd& /*pd*/) {
    std::fputs("bench_datapath: without UCX's registration cache: apt-get install libucx-dev\n",
               stderr);
}

} // namespace bench

#endif
