// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "scenes.hpp"

#include <hcamem/allocator.hpp>

#include <cstdio>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

namespace samples {
namespace {

using pool_string = std::basic_string<char, std::char_traits<char>, hcamem::allocator<char>>;
using pool_list = std::list<measurement, hcamem::allocator<measurement>>;
using pool_map = std::map<std::uint64_t, pool_string, std::less<>,
                          hcamem::allocator<std::pair<const std::uint64_t, pool_string>>>;

// A string that fits into the object itself has its characters where the object lies, which may be
// the stack; a longer one has them in the pool.
constexpr std::size_t beyond_small_string = 64;

std::uint64_t send_string(stage& on, const pool_string& text) {
    pool_string received(text.size(), '\0', hcamem::allocator<char>(on.pool));
    on.wire.transfer(on.binding.sge(text.data(), text.size()),
                     on.binding.sge(received.data(), received.size()));
    return received == text ? 0 : 1;
}

std::uint64_t show_string(stage& on) {
    pool_string text{hcamem::allocator<char>(on.pool)};
    while (text.size() < beyond_small_string) {
        text += "from mmap() to the wire, ";
    }
    std::printf("std::string of %zu characters, sent from its storage\n", text.size());
    return send_string(on, text);
}

std::uint64_t show_list(stage& on) {
    pool_list list{hcamem::allocator<measurement>(on.pool)};
    for (unsigned i = 0; i < gathered_pieces; ++i) {
        list.push_back({i, 1.0 / (1 + i)});
    }

    // One entry per node: the HCA collects the elements from where they lie.
    std::vector<ibv_sge> pieces;
    for (const auto& element : list) {
        pieces.push_back(on.binding.sge(&element, sizeof(element)));
    }
    std::vector<measurement, hcamem::allocator<measurement>> received(
        list.size(), measurement{}, hcamem::allocator<measurement>(on.pool));
    on.wire.transfer(pieces,
                     on.binding.sge(received.data(), received.size() * sizeof(measurement)));
    std::printf("std::list of %zu elements, gathered from its nodes into one message\n",
                list.size());

    std::uint64_t wrong = 0;
    auto next = received.begin();
    for (const auto& element : list) {
        wrong += element == *next++ ? 0 : 1;
    }
    return wrong;
}

std::uint64_t show_map(stage& on) {
    pool_map map{hcamem::allocator<pool_map::value_type>(on.pool)};
    for (std::uint64_t key = 0; key < 10; ++key) {
        const char letter = static_cast<char>('a' + key);
        map.emplace(
            key, pool_string(beyond_small_string + key, letter, hcamem::allocator<char>(on.pool)));
    }
    std::uint64_t wrong = 0;
    for (const auto& [key, text] : map) {
        wrong += send_string(on, text);
    }
    std::printf("std::map with %zu strings, each sent from its node's string\n", map.size());
    return wrong;
}

} // namespace

std::uint64_t show_nodes(stage& on) {
    std::uint64_t wrong = show_string(on);
    wrong += show_list(on);
    wrong += show_map(on);
    return wrong;
}

} // namespace samples
