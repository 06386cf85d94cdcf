// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Ways to come by a registered buffer for a message, and to be rid of it afterwards.
#ifndef BENCH_GUEST_WAY_HPP
#define BENCH_GUEST_WAY_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "candidates/candidate.hpp"
#include "support/rdma.hpp"

namespace bench {

struct message_buffer {
    std::byte* data;
    std::uint32_t lkey;
};

class way {
  public:
    /// `batch`: messages to be timed together, many where one takes few instructions.
    way(std::string name, int batch) : name_(std::move(name)), batch_(batch) {}
    way(const way&) = delete;
    way& operator=(const way&) = delete;
    way(way&&) = delete;
    way& operator=(way&&) = delete;
    virtual ~way() = default;

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] int batch() const { return batch_; }

    /// Before the first message of this size.
    virtual void begin(std::size_t bytes) = 0;
    virtual message_buffer get(std::size_t bytes) = 0;
    virtual void put() = 0;
    /// After the last.
    virtual void end() = 0;

  private:
    std::string name_;
    int batch_;
};

using ways = std::vector<std::unique_ptr<way>>;

/// Memory of a candidate obtained and registered for each message.
std::unique_ptr<way> make_fresh_way(candidate& from);
/// hcamem_alloc() with the slab's key, and hcamem::buffer_pool.
void add_pool_ways(ways& all, const support::Pd& pd, const std::string& hca);
/// UCX's registration cache over malloc(); nothing where UCX's headers were not there. It
/// patches mmap() and the like for good, so it comes last.
void add_rcache_ways(ways& all, const support::Pd& pd);

} // namespace bench

#endif
