// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <cstddef>
#include <memory_resource>

#include "contender.hpp"
#include "patterns/contenders.hpp"

namespace bench {
namespace {

class pmr_impl {
  public:
    explicit pmr_impl(const bench_case& /*what*/) {}

    class user {
      public:
        explicit user(pmr_impl& from) : resource_(&from.resource_) {}
        void* get(std::size_t bytes) { return resource_->allocate(bytes, cache_line); }
        void put(void* buffer, std::size_t bytes) {
            resource_->deallocate(buffer, bytes, cache_line);
        }

      private:
        std::pmr::memory_resource* resource_;
    };

  private:
    // Sizes up to the largest of the patterns come from its pools.
    std::pmr::synchronized_pool_resource resource_{std::pmr::pool_options{0, mixed_largest},
                                                   std::pmr::new_delete_resource()};
};

const registered pmr("std::pmr synchronized", side::peer, sized_contender<pmr_impl>::make);

} // namespace
} // namespace bench
