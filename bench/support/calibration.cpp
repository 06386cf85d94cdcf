// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A loop that only computes. It runs between the others in every case: what its time varies
// by is the machine's doing.
#include <cstdint>
#include <memory>

#include "contender.hpp"

namespace bench {
namespace {

class calibration final : public contender {
  public:
    void run(benchmark::State& state) override {
        std::uint64_t value = 1;
        for ([[maybe_unused]] auto iteration : state) {
            for (int step = 0; step < 8; ++step) {
                value = value * 6364136223846793005U + 1442695040888963407U;
                benchmark::DoNotOptimize(value);
            }
        }
    }
};

const registered loop("calibration", side::calibration,
                      [](const bench_case& /*what*/) { return std::make_unique<calibration>(); });

} // namespace
} // namespace bench
