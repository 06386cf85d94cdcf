// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The key of an address in a pool of many slabs, addresses in random order.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include <hcamem/binding.hpp>
#include <hcamem/pool.hpp>

#include "contender.hpp"
#include "ours/pools.hpp"
#include "patterns/mixed.hpp"
#include "support/fake_verbs.hpp"
#include "support/indirect.hpp"

namespace bench {
namespace {

class key_contender : public contender {
  public:
    explicit key_contender(const bench_case& what) : pool_(make_pool(lkey_slab_bytes, what.bytes)) {
        const std::size_t slabs = what.bytes / lkey_slab_bytes;
        std::vector<char*> blocks(slabs);
        for (char*& block : blocks) {
            block = static_cast<char*>(pool_.allocate(lkey_slab_bytes));
            blocks_.push_back(block);
        }
        if (pool_.stats().slabs != slabs) {
            throw std::runtime_error("the pool has not the number of slabs that was asked for");
        }
        binding_ = std::make_unique<hcamem::binding>(pool_.attach(fake_domain()));
        mixed_random random(1);
        for (const void*& address : addresses_) {
            const std::uint64_t drawn = random.next();
            address = blocks[(drawn >> 32) % slabs] + drawn % lkey_slab_bytes;
            if (binding_->lkey(address) == 0) {
                throw std::runtime_error("an address of the pool has no key");
            }
        }
    }
    key_contender(const key_contender&) = delete;
    key_contender& operator=(const key_contender&) = delete;
    key_contender(key_contender&&) = delete;
    key_contender& operator=(key_contender&&) = delete;
    ~key_contender() override {
        binding_.reset();
        pool_.deallocate_n(blocks_);
    }

  protected:
    template <class Lookup>
    void look_up(benchmark::State& state, Lookup lookup) {
        std::uint32_t sum = 0;
        for ([[maybe_unused]] auto iteration : state) {
            for (const void* const address : addresses_) {
                sum += lookup(*binding_, address);
            }
        }
        benchmark::DoNotOptimize(sum);
    }

  private:
    hcamem::pool pool_;
    std::vector<void*> blocks_;
    std::unique_ptr<hcamem::binding> binding_;
    std::array<const void*, lkey_addresses> addresses_{};
};

class c_keys final : public key_contender {
  public:
    using key_contender::key_contender;
    void run(benchmark::State& state) override {
        look_up(state, [call = indirect(&hcamem_lkey)](const hcamem::binding& binding,
                                                       const void* address) {
            return call(binding.c_handle(), address);
        });
    }
};

class cpp_keys final : public key_contender {
  public:
    using key_contender::key_contender;
    void run(benchmark::State& state) override {
        look_up(state, [](const hcamem::binding& binding, const void* address) {
            return binding.lkey(address);
        });
    }
};

template <class Keys>
std::unique_ptr<contender> make(const bench_case& what) {
    return what.kind == pattern::lkey ? std::make_unique<Keys>(what) : nullptr;
}

const registered c("hcamem_lkey", side::ours, make<c_keys>);
const registered cpp("hcamem::binding::lkey", side::ours, make<cpp_keys>);

} // namespace
} // namespace bench
