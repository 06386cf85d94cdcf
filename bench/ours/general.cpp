// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Blocks of any size: the C calls and the C++ class over them.
#include <cstddef>

#include <hcamem/pool.hpp>

#include "contender.hpp"
#include "ours/pools.hpp"
#include "patterns/contenders.hpp"
#include "support/indirect.hpp"

namespace bench {
namespace {

/// hcamem_alloc() with hcamem_free(), or with hcamem_free_sized().
template <bool sized>
class c_impl {
  public:
    explicit c_impl(const bench_case& /*what*/) {}

    class user {
      public:
        explicit user(const c_impl& from) : pool_(from.pool_.c_handle()) {}
        void* get(std::size_t bytes) { return allocate_(pool_, bytes, 0, 0); }
        void put(void* buffer, std::size_t bytes) {
            if constexpr (sized) {
                free_sized_(pool_, buffer, bytes, 0);
            } else {
                free_(pool_, buffer);
            }
        }

      private:
        hcamem_pool* pool_;
        decltype(&hcamem_alloc) allocate_ = indirect(&hcamem_alloc);
        decltype(&hcamem_free) free_ = indirect(&hcamem_free);
        decltype(&hcamem_free_sized) free_sized_ = indirect(&hcamem_free_sized);
    };

  private:
    hcamem::pool pool_ = make_pool();
};

class cpp_impl {
  public:
    explicit cpp_impl(const bench_case& /*what*/) {}

    class user {
      public:
        explicit user(const cpp_impl& from) : pool_(from.pool_) {}
        void* get(std::size_t bytes) { return pool_.allocate(bytes); }
        void put(void* buffer, std::size_t bytes) { pool_.deallocate(buffer, bytes); }

      private:
        hcamem::pool pool_;
    };

  private:
    hcamem::pool pool_ = make_pool();
};

const registered unsized("hcamem_alloc, hcamem_free", side::ours,
                         sized_contender<c_impl<false>>::make);
const registered sized("hcamem_alloc, hcamem_free_sized", side::ours,
                       sized_contender<c_impl<true>>::make);
const registered cpp("hcamem::pool", side::ours, sized_contender<cpp_impl>::make);

} // namespace
} // namespace bench
