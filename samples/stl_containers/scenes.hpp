// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the sample shows, one function each. They print what happens, and return how many elements
// arrived with another value than they were sent with.
#ifndef SAMPLES_STL_CONTAINERS_SCENES_HPP
#define SAMPLES_STL_CONTAINERS_SCENES_HPP

#include "loopback.hpp"

#include <hcamem/binding.hpp>
#include <hcamem/pool.hpp>

#include <cstddef>
#include <cstdint>

namespace samples {

/// What containers send.
struct measurement {
    std::uint64_t sequence;
    double value;

    friend bool operator==(const measurement&, const measurement&) = default;
};

/// The pool, its registration, and the way through the HCA.
struct stage {
    hcamem::pool& pool;
    hcamem::binding& binding;
    loopback& wire;
};

/// std::vector: sent from its own storage into that of another, while both grow.
[[nodiscard]] std::uint64_t show_vectors(stage& on, std::size_t elements);

/// std::string, std::list and std::map whose nodes live in the pool.
[[nodiscard]] std::uint64_t show_nodes(stage& on);

/// std::pmr containers over a memory_resource of the pool.
[[nodiscard]] std::uint64_t show_pmr(stage& on);

/// Pieces that show_nodes() gathers into one message.
inline constexpr unsigned gathered_pieces = 8;

} // namespace samples

#endif
