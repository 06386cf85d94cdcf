// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Buffers of one size: the C calls, and the C++ class whose get and put are inlined.
#include <cstddef>
#include <stdexcept>
#include <string>

#include <hcamem/buffer_pool.hpp>
#include <hcamem/pool.hpp>

#include "contender.hpp"
#include "ours/pools.hpp"
#include "patterns/contenders.hpp"
#include "support/indirect.hpp"

namespace bench {
namespace {

class c_impl {
  public:
    explicit c_impl(const bench_case& what)
        : fixed_(hcamem_fixed_create(pool_.c_handle(), what.bytes, 0, fixed_buffers, 0)) {
        if (fixed_ == nullptr) {
            throw std::runtime_error(std::string("hcamem_fixed_create: ") + hcamem_last_message());
        }
    }
    c_impl(const c_impl&) = delete;
    c_impl& operator=(const c_impl&) = delete;
    c_impl(c_impl&&) = delete;
    c_impl& operator=(c_impl&&) = delete;
    ~c_impl() { hcamem_fixed_destroy(fixed_); }

    class user {
      public:
        explicit user(const c_impl& from) : fixed_(from.fixed_) {}
        void* get() { return get_(fixed_, 0); }
        void put(void* buffer) { put_(fixed_, buffer); }
        void get_n(batch_of_buffers& buffers) {
            if (get_n_(fixed_, buffers.data(), buffers.size(), 0) != 0) [[unlikely]] {
                buffers.fill(nullptr);
            }
        }
        void put_n(batch_of_buffers& buffers) { put_n_(fixed_, buffers.data(), buffers.size()); }

      private:
        hcamem_fixed* fixed_;
        decltype(&hcamem_fixed_get) get_ = indirect(&hcamem_fixed_get);
        decltype(&hcamem_fixed_put) put_ = indirect(&hcamem_fixed_put);
        decltype(&hcamem_fixed_get_n) get_n_ = indirect(&hcamem_fixed_get_n);
        decltype(&hcamem_fixed_put_n) put_n_ = indirect(&hcamem_fixed_put_n);
    };

  private:
    hcamem::pool pool_ = make_pool();
    hcamem_fixed* fixed_;
};

class inlined_impl {
  public:
    explicit inlined_impl(const bench_case& what)
        : buffers_(make_pool(), what.bytes, fixed_buffers) {}

    class user {
      public:
        explicit user(inlined_impl& from) : buffers_(from.buffers_) {}
        void* get() { return buffers_.get(); }
        void put(void* buffer) { buffers_.put(buffer); }
        void get_n(batch_of_buffers& buffers) {
            if (!buffers_.get_n(buffers)) [[unlikely]] {
                buffers.fill(nullptr);
            }
        }
        void put_n(batch_of_buffers& buffers) { buffers_.put_n(buffers); }

      private:
        hcamem::buffer_pool& buffers_;
    };

  private:
    hcamem::buffer_pool buffers_;
};

const registered c("hcamem_fixed_get, hcamem_fixed_put", side::ours, fixed_contender<c_impl>::make);
const registered inlined("hcamem::buffer_pool", side::ours, fixed_contender<inlined_impl>::make);

} // namespace
} // namespace bench
