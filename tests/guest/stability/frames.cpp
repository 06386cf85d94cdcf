// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "frames.hpp"

#include <ios>
#include <sstream>

#include "support/guest.hpp"

std::vector<Frame> frames() {
    std::istringstream list(support::read_text("/sys/kernel/debug/hcamem/frames"));
    std::vector<Frame> all;
    Frame one;
    std::string number;
    while (list >> one.region >> number >> one.pages >> one.zone) {
        one.frame = std::stoull(number, nullptr, 16);
        all.push_back(one);
    }
    return all;
}
