// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <hcamem/binding.hpp>
#include <hcamem/buffer_pool.hpp>
#include <hcamem/pool.hpp>

#include <optional>

#include "datapath/way.hpp"
#include "support/failure.hpp"

namespace bench {
namespace {

constexpr int messages = 256;

hcamem::options options_of(const std::string& hca) {
    hcamem::options chosen;
    chosen.source = HCAMEM_DEVICE;
    chosen.mapping = HCAMEM_MAP_HUGE;
    chosen.flags |= HCAMEM_OPT_DMABUF_ONLY | HCAMEM_OPT_PREFAULT;
    chosen.hca = hca.c_str();
    return chosen;
}

class alloc_way final : public way {
  public:
    alloc_way(const support::Pd& pd, const std::string& hca)
        : way("hcamem_alloc, hcamem_lkey, hcamem_free", messages),
          pool_(options_of(hca)),
          binding_(pool_.attach(pd.get(), support::remote_access)) {}

    // The pool has a slab for the size, and this thread its cache, from then on.
    void begin(std::size_t bytes) override {
        get(bytes);
        put();
    }
    message_buffer get(std::size_t bytes) override {
        block_ = hcamem_alloc(pool_.c_handle(), bytes, 0, 0);
        if (block_ == nullptr) {
            support::fail(hcamem_last_message());
        }
        return {static_cast<std::byte*>(block_), hcamem_lkey(binding_.c_handle(), block_)};
    }
    void put() override { hcamem_free(pool_.c_handle(), block_); }
    void end() override {}

  private:
    hcamem::pool pool_;
    hcamem::binding binding_;
    void* block_ = nullptr;
};

class fixed_way final : public way {
  public:
    fixed_way(const support::Pd& pd, const std::string& hca)
        : way("hcamem::buffer_pool", messages),
          pool_(options_of(hca)),
          binding_(pool_.attach(pd.get(), support::remote_access)) {}

    void begin(std::size_t bytes) override {
        constexpr std::uint32_t buffers = 16;
        buffers_.emplace(pool_, bytes, buffers);
        get(bytes);
        put();
    }
    message_buffer get(std::size_t /*bytes*/) override {
        buffer_ = buffers_->get();
        return {static_cast<std::byte*>(buffer_), binding_.lkey(buffer_)};
    }
    void put() override { buffers_->put(buffer_); }
    void end() override { buffers_.reset(); }

  private:
    hcamem::pool pool_;
    hcamem::binding binding_;
    std::optional<hcamem::buffer_pool> buffers_;
    void* buffer_ = nullptr;
};

} // namespace

void add_pool_ways(ways& all, const support::Pd& pd, const std::string& hca) {
    all.push_back(std::make_unique<alloc_way>(pd, hca));
    all.push_back(std::make_unique<fixed_way>(pd, hca));
}

} // namespace bench
