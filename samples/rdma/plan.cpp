// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "plan.hpp"

#include "../common/pattern.hpp"

#include <random>

namespace samples {
namespace {

extent odd_extent(std::mt19937_64& random, std::size_t data_bytes) {
    const std::size_t offset = (random() % (data_bytes / 2)) | 1U;
    const std::size_t longest = data_bytes - offset;
    const std::size_t length = (random() % longest) | 1U;
    return {offset, length};
}

std::span<std::byte> part(std::vector<std::byte>& data, const extent& where) {
    return std::span(data).subspan(where.offset, where.length);
}

} // namespace

round_plan plan_of(std::uint64_t round, std::size_t data_bytes) {
    std::mt19937_64 random(round + 1);
    round_plan plan{};
    plan.client_write = odd_extent(random, data_bytes);
    plan.server_write = odd_extent(random, data_bytes);
    plan.read = odd_extent(random, data_bytes);
    plan.add = random();
    plan.swap = random();
    return plan;
}

void memory_model::apply_client_write(std::uint64_t round) {
    fill_pattern(part(data_, plan_of(round, data_.size()).client_write), {round, client_sender});
}

void memory_model::apply_server_write(std::uint64_t round) {
    fill_pattern(part(data_, plan_of(round, data_.size()).server_write), {round, server_sender});
}

void memory_model::apply_atomics(std::uint64_t round) {
    const round_plan plan = plan_of(round, data_.size());
    counter_ += plan.add;
    word_ = plan.swap;
}

std::uint64_t memory_model::wrong_bytes(std::span<const std::byte> bytes,
                                        std::size_t offset) const {
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        wrong += bytes[i] != data_[offset + i] ? 1 : 0;
    }
    return wrong;
}

} // namespace samples
