// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Blocks of any size, many with one call.
#include <cstddef>

#include <hcamem/pool.hpp>

#include "contender.hpp"
#include "ours/pools.hpp"
#include "patterns/contenders.hpp"
#include "support/indirect.hpp"

namespace bench {
namespace {

class bulk_impl {
  public:
    explicit bulk_impl(const bench_case& what) : bytes_(what.bytes) {}

    class user {
      public:
        explicit user(const bulk_impl& from) : pool_(from.pool_.c_handle()), bytes_(from.bytes_) {}

        void get_n(batch_of_buffers& buffers) {
            if (allocate_(pool_, bytes_, buffers.data(), buffers.size()) != 0) [[unlikely]] {
                buffers.fill(nullptr);
            }
        }
        void put_n(batch_of_buffers& buffers) { free_(pool_, buffers.data(), buffers.size()); }

        // The patterns with single buffers are those of ours/general.cpp.
        void* get() { return nullptr; }
        void put(void* /*buffer*/) {}

      private:
        hcamem_pool* pool_;
        std::size_t bytes_;
        decltype(&hcamem_alloc_n) allocate_ = indirect(&hcamem_alloc_n);
        decltype(&hcamem_free_n) free_ = indirect(&hcamem_free_n);
    };

  private:
    hcamem::pool pool_ = make_pool();
    std::size_t bytes_;
};

std::unique_ptr<contender> make(const bench_case& what) {
    return what.kind == pattern::bulk ? fixed_contender<bulk_impl>::make(what) : nullptr;
}

const registered bulk("hcamem_alloc_n, hcamem_free_n", side::ours, make);

} // namespace
} // namespace bench
