// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "sides.hpp"

#include "../common/exit_codes.hpp"
#include "../common/pattern.hpp"

#include <cstring>

namespace samples {
namespace {

std::uint64_t word_at(const message_buffer& memory, std::size_t offset) {
    std::uint64_t value = 0;
    std::memcpy(&value, memory.bytes.data() + offset, sizeof(value));
    return value;
}

void expect_round(const note& message, std::uint64_t round) {
    if (message.round != round) {
        throw failure(exit_code::peer, "the client is in round " + std::to_string(message.round) +
                                           ", this side in " + std::to_string(round));
    }
}

} // namespace

std::uint64_t run_server(endpoint& side, std::uint64_t rounds, const message_buffer& memory) {
    const auto data = memory.bytes.subspan(data_offset);
    memory_model model(data.size());
    std::uint64_t all_wrong = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        // The client has written: all of the data area is compared, so that a byte beside the
        // written range is seen, too.
        expect_round(side.receive_note(), round);
        model.apply_client_write(round);
        std::uint64_t wrong = model.wrong_bytes(data, 0);
        const extent mine = plan_of(round, data.size()).server_write;
        fill_pattern(data.subspan(mine.offset, mine.length), {round, server_sender});
        model.apply_server_write(round);
        side.send_note({round, wrong});
        all_wrong += wrong;

        // The client has read, and done its atomics.
        expect_round(side.receive_note(), round);
        model.apply_atomics(round);
        wrong = model.wrong_bytes(data, 0);
        wrong += word_at(memory, counter_offset) != model.counter() ? 1 : 0;
        wrong += word_at(memory, word_offset) != model.word() ? 1 : 0;
        side.send_note({round, wrong});
        all_wrong += wrong;
    }
    return all_wrong;
}

} // namespace samples
