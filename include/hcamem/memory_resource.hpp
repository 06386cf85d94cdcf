// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_MEMORY_RESOURCE_HPP
#define HCAMEM_MEMORY_RESOURCE_HPP

#include <cstddef>
#include <memory_resource>
#include <utility>

#include <hcamem/pool.hpp>

namespace hcamem {

/// A std::pmr::memory_resource over a pool; holds a handle of it. Equal to any
/// other memory_resource of the same pool.
class memory_resource : public std::pmr::memory_resource {
  public:
    explicit memory_resource(pool from) noexcept : pool_(std::move(from)) {}

    [[nodiscard]] const pool& get_pool() const noexcept { return pool_; }

  private:
    void* do_allocate(std::size_t bytes, std::size_t align) override {
        return pool_.allocate(bytes, stricter(align));
    }

    void do_deallocate(void* block, std::size_t bytes, std::size_t align) override {
        pool_.deallocate(block, bytes, stricter(align));
    }

    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        const auto* ours = dynamic_cast<const memory_resource*>(&other);
        return ours != nullptr && ours->pool_ == pool_;
    }

    // All blocks are aligned to 64, and asking for less has no effect but to cost.
    static std::size_t stricter(std::size_t align) noexcept { return align <= 64 ? 0 : align; }

    pool pool_;
};

} // namespace hcamem

#endif
