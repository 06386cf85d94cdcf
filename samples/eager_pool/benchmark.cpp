// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "benchmark.hpp"

#include "../common/pattern.hpp"

#include <algorithm>
#include <chrono>

namespace samples {
namespace {

using clock = std::chrono::steady_clock;

// Messages that a stream has under way at a time, and the memory they may take.
constexpr std::size_t most_in_stream = 16;
constexpr std::size_t stream_bytes = std::size_t{4} << 20;

double seconds_since(clock::time_point start) {
    return std::chrono::duration<double>(clock::now() - start).count();
}

// Different for each sender and receiver, so that a message that went astray is seen.
message_id id_of(std::uint64_t number, unsigned sender, unsigned receiver) {
    return {number, static_cast<std::uint8_t>(sender * 101 + receiver * 29)};
}

} // namespace

class benchmark::memory {
  public:
    memory(transport& layer, bool heap, std::size_t messages, std::size_t bytes)
        : bytes_(bytes),
          heap_(heap ? messages * bytes : 0),
          block_(heap ? transport::block(nullptr, transport::give_back{})
                      : layer.allocate(messages * bytes)) {}

    [[nodiscard]] std::span<std::byte> message(std::size_t index) {
        std::byte* const start = block_ ? block_.get() : heap_.data();
        return {start + index * bytes_, bytes_};
    }

  private:
    std::size_t bytes_;
    std::vector<std::byte> heap_;
    transport::block block_;
};

benchmark_result benchmark::run(std::size_t bytes) {
    benchmark_result result{};
    const unsigned partner = ranks_.rank() ^ 1U;
    layer_.barrier();
    if (partner < ranks_.size()) {
        result.latency_usec = latency(partner, bytes);
    }
    layer_.barrier();
    if (partner < ranks_.size()) {
        result.megabytes_per_second = stream(partner, bytes);
    }
    layer_.barrier();
    result.exchange_megabytes_per_second = exchange(bytes);
    layer_.barrier();
    return result;
}

eager_request* benchmark::send(unsigned rank, std::span<std::byte> message, std::uint64_t number) {
    if (options_.check) {
        fill_pattern(message, id_of(number, ranks_.rank(), rank));
    }
    return layer_.send(rank, message);
}

void benchmark::finish_receive(eager_request* request, unsigned rank, std::span<std::byte> message,
                               std::uint64_t number) {
    const std::uint64_t length = layer_.wait(request);
    if (!options_.check) {
        return;
    }
    ++checked_messages_;
    wrong_bytes_ += compare_pattern(message, id_of(number, rank, ranks_.rank())).wrong_bytes;
    wrong_bytes_ += message.size() - length; // a longer one is an error
}

double benchmark::latency(unsigned partner, std::size_t bytes) {
    memory both(layer_, options_.heap, 2, bytes);
    const auto out = both.message(0);
    const auto in = both.message(1);
    const bool begins = ranks_.rank() < partner;
    const auto start = clock::now();
    for (std::uint64_t i = 0; i < options_.iterations; ++i) {
        // Before the answer can come: it is then fetched to its place at once.
        eager_request* const incoming = layer_.receive(partner, in);
        if (begins) {
            layer_.wait(send(partner, out, i));
        }
        finish_receive(incoming, partner, in, i);
        if (!begins) {
            layer_.wait(send(partner, out, i));
        }
    }
    return seconds_since(start) * 1e6 / (2.0 * static_cast<double>(options_.iterations));
}

double benchmark::stream(unsigned partner, std::size_t bytes) {
    const std::size_t window = std::clamp<std::size_t>(stream_bytes / bytes, 1, most_in_stream);
    memory slots(layer_, options_.heap, window, bytes);
    std::vector<eager_request*> begun(window, nullptr);
    const bool sends = ranks_.rank() < partner;
    const auto start = clock::now();
    const auto finish = [&](std::uint64_t i) {
        const auto slot = slots.message(i % window);
        if (sends) {
            layer_.wait(begun[i % window]);
        } else {
            finish_receive(begun[i % window], partner, slot, i);
        }
    };
    for (std::uint64_t i = 0; i < options_.iterations; ++i) {
        if (i >= window) {
            finish(i - window);
        }
        const auto slot = slots.message(i % window);
        begun[i % window] = sends ? send(partner, slot, i) : layer_.receive(partner, slot);
    }
    for (std::uint64_t i =
             options_.iterations - std::min<std::uint64_t>(options_.iterations, window);
         i < options_.iterations; ++i) {
        finish(i);
    }
    // The receiver has got them all.
    layer_.wait(sends ? layer_.receive(partner, {}) : layer_.send(partner, {}));
    return static_cast<double>(bytes) * static_cast<double>(options_.iterations) /
           seconds_since(start) / 1e6;
}

double benchmark::exchange(std::size_t bytes) {
    const std::size_t others = ranks_.size() - 1;
    memory slots(layer_, options_.heap, 2 * others, bytes);
    std::vector<eager_request*> sent(others);
    std::vector<eager_request*> incoming(others);
    const auto rank_of = [this](std::size_t index) {
        // From the next one on, so that not all send to the same rank first.
        return static_cast<unsigned>((ranks_.rank() + 1 + index) % ranks_.size());
    };
    const auto start = clock::now();
    for (std::uint64_t i = 0; i < options_.iterations; ++i) {
        // Sends first: what comes before its receive is asked for has to be parked.
        for (std::size_t k = 0; k < others; ++k) {
            sent[k] = send(rank_of(k), slots.message(k), i);
        }
        for (std::size_t k = 0; k < others; ++k) {
            incoming[k] = layer_.receive(rank_of(k), slots.message(others + k));
        }
        for (std::size_t k = 0; k < others; ++k) {
            finish_receive(incoming[k], rank_of(k), slots.message(others + k), i);
            layer_.wait(sent[k]);
        }
    }
    return static_cast<double>(bytes) * static_cast<double>(others * options_.iterations) /
           seconds_since(start) / 1e6;
}

} // namespace samples
