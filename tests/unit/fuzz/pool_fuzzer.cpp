// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// libFuzzer's way in to the operations.
#include <cstddef>
#include <cstdint>

#include "support/operations.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    unit::run_operations({bytes, size});
    return 0;
}
