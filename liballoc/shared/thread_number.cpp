// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "shared/thread_number.h"

#include <atomic>

namespace hcamem::core {
namespace {

std::atomic<std::uint64_t> last_number{0};

[[gnu::tls_model("initial-exec")]] thread_local std::uint64_t number = 0;

} // namespace

std::uint64_t thread_number() noexcept {
    if (number == 0) {
        number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    return number;
}

} // namespace hcamem::core
