// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_GUEST_STABILITY_FRAMES_HPP
#define TESTS_GUEST_STABILITY_FRAMES_HPP

#include <cstdint>
#include <string>
#include <vector>

/// A chunk of a region as debugfs lists it.
struct Frame {
    std::uint64_t region;
    std::uint64_t frame; ///< number of its first page frame
    std::uint64_t pages;
    std::string zone;

    bool operator==(const Frame&) const = default;
};

/// The page frames of all regions, in the order of regions and chunks.
std::vector<Frame> frames();

#endif
