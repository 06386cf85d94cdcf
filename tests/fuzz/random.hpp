// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Numbers that depend on nothing but a seed, on every machine and library.
#ifndef TESTS_FUZZ_RANDOM_HPP
#define TESTS_FUZZ_RANDOM_HPP

#include <cstdint>
#include <initializer_list>
#include <iterator>

namespace fuzz {

/// Spreads the bits of a number over all of the result (the finisher of splitmix64).
constexpr std::uint64_t scramble(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
    return value ^ (value >> 31);
}

/// A seed that is made of two.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    return scramble(a + 0x9e3779b97f4a7c15U * (b + 1));
}

/// splitmix64
class Random {
  public:
    explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

    constexpr std::uint64_t next() { return scramble(state_ += 0x9e3779b97f4a7c15U); }
    /// 0 <= result < bound; 0 if bound is 0.
    constexpr std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
    /// low <= result <= high
    constexpr std::uint64_t between(std::uint64_t low, std::uint64_t high) {
        return low + below(high - low + 1);
    }
    constexpr bool one_in(std::uint64_t n) { return below(n) == 0; }
    template <class T>
    constexpr T one_of(std::initializer_list<T> values) {
        return *std::next(values.begin(), static_cast<std::ptrdiff_t>(below(values.size())));
    }

  private:
    std::uint64_t state_;
};

} // namespace fuzz

#endif
