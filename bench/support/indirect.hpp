// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_SUPPORT_INDIRECT_HPP
#define BENCH_SUPPORT_INDIRECT_HPP

namespace bench {

/// The same function, but the compiler no longer knows which: everybody's calls are then
/// calls through a pointer, ours and those of libraries that were loaded by name.
template <class Function>
Function* indirect(Function* function) noexcept {
    asm("" : "+r"(function));
    return function;
}

} // namespace bench

#endif
