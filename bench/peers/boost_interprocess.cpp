// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Boost.Interprocess in memory it is given: its best-fit heap, and its node allocator with
// a cache, which is for one size.
#include <cstddef>
#include <stdexcept>

#include <boost/interprocess/allocators/cached_node_allocator.hpp>
#include <boost/interprocess/indexes/iset_index.hpp>
#include <boost/interprocess/managed_external_buffer.hpp>
#include <boost/interprocess/mem_algo/rbtree_best_fit.hpp>
#include <boost/interprocess/sync/mutex_family.hpp>

#include "contender.hpp"
#include "patterns/contenders.hpp"
#include "support/mapped_memory.hpp"

namespace bench {
namespace {

namespace ipc = boost::interprocess;

constexpr std::size_t heap_bytes = std::size_t{1} << 30;

// Blocks aligned to 64, as ours are.
using heap = ipc::basic_managed_external_buffer<
    char, ipc::rbtree_best_fit<ipc::mutex_family, ipc::offset_ptr<void>, cache_line>,
    ipc::iset_index>;

class heap_impl {
  public:
    explicit heap_impl(const bench_case& /*what*/) {}

    class user {
      public:
        explicit user(heap_impl& from) : heap_(&from.heap_) {}
        void* get(std::size_t bytes) { return heap_->allocate(bytes, std::nothrow); }
        void put(void* buffer, std::size_t /*bytes*/) { heap_->deallocate(buffer); }

      private:
        heap* heap_;
    };

  private:
    mapped_memory memory_{heap_bytes};
    heap heap_{ipc::create_only, memory_.address(), memory_.bytes()};
};

template <std::size_t bytes>
struct node {
    char data[bytes];
};

template <std::size_t bytes>
class cached_node_impl {
  public:
    using allocator = ipc::cached_node_allocator<node<bytes>, heap::segment_manager>;

    explicit cached_node_impl(const bench_case& /*what*/) {}

    class user {
      public:
        explicit user(cached_node_impl& from) : allocator_(from.allocator_) {}
        void* get() { return allocator_.allocate_one().get(); }
        void put(void* buffer) { allocator_.deallocate_one(static_cast<node<bytes>*>(buffer)); }

      private:
        allocator allocator_; // with a cache of its own, over the nodes that all copies share
    };

  private:
    mapped_memory memory_{heap_bytes};
    heap heap_{ipc::create_only, memory_.address(), memory_.bytes()};
    allocator allocator_{heap_.get_segment_manager()};
};

std::unique_ptr<contender> make_cached_node(const bench_case& what) {
    switch (what.bytes) {
    case 256:
        return fixed_contender<cached_node_impl<256>>::make(what);
    case 4096:
        return fixed_contender<cached_node_impl<4096>>::make(what);
    case 65536:
        return fixed_contender<cached_node_impl<65536>>::make(what);
    default:
        return nullptr;
    }
}

const registered best_fit("Boost.Interprocess mutex", side::peer, sized_contender<heap_impl>::make);
const registered nodes("Boost.Interprocess cached_node", side::peer, make_cached_node);

} // namespace
} // namespace bench
