// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What is measured of the message layer, for messages of one size.
#ifndef SAMPLES_EAGER_POOL_BENCHMARK_HPP
#define SAMPLES_EAGER_POOL_BENCHMARK_HPP

#include "transport.hpp"

#include <cstdint>
#include <vector>

namespace samples {

struct benchmark_options {
    std::uint64_t iterations = 100;
    bool check = false;
    bool heap = false; // messages lie in ordinary memory
};

struct benchmark_result {
    double latency_usec = 0;              // half of a round trip between the ranks of a pair
    double megabytes_per_second;          // one way between the ranks of a pair
    double exchange_megabytes_per_second; // what one rank sends while all send to all
};

class benchmark {
  public:
    /// Both must outlive it.
    benchmark(job& ranks, transport& layer, const benchmark_options& options)
        : ranks_(ranks), layer_(layer), options_(options) {}

    /// Ranks 2k and 2k + 1 are pairs; without a partner the last rank has no latency and rate.
    [[nodiscard]] benchmark_result run(std::size_t bytes);

    [[nodiscard]] std::uint64_t wrong_bytes() const { return wrong_bytes_; }
    [[nodiscard]] std::uint64_t checked_messages() const { return checked_messages_; }

  private:
    /// Where messages lie: of the layer, or of the heap.
    class memory;

    [[nodiscard]] double latency(unsigned partner, std::size_t bytes);
    [[nodiscard]] double stream(unsigned partner, std::size_t bytes);
    [[nodiscard]] double exchange(std::size_t bytes);

    [[nodiscard]] eager_request* send(unsigned rank, std::span<std::byte> message,
                                      std::uint64_t number);
    void finish_receive(eager_request* request, unsigned rank, std::span<std::byte> message,
                        std::uint64_t number);

    job& ranks_;
    transport& layer_;
    const benchmark_options& options_;
    std::uint64_t wrong_bytes_ = 0;
    std::uint64_t checked_messages_ = 0;
};

} // namespace samples

#endif
