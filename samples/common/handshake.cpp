// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "handshake.hpp"

#include "exit_codes.hpp"

#include <cstring>
#include <endian.h>

namespace samples {
namespace {

constexpr std::uint64_t protocol_version = 1;

// Where each number of a hello stands; the agreed options follow.
enum : std::size_t {
    at_version,
    at_sample,
    at_qp_number,
    at_first_psn,
    at_lid,
    at_gid_prefix,
    at_gid_interface,
    at_memory_address,
    at_memory_bytes,
    at_memory_key,
    at_options,
};

} // namespace

std::vector<std::byte> pack(const std::vector<std::uint64_t>& numbers) {
    std::vector<std::byte> bytes(numbers.size() * sizeof(std::uint64_t));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::uint64_t number = htobe64(numbers[i]);
        std::memcpy(bytes.data() + i * sizeof(number), &number, sizeof(number));
    }
    return bytes;
}

std::vector<std::uint64_t> unpack(const std::vector<std::byte>& bytes, std::size_t count) {
    if (bytes.size() != count * sizeof(std::uint64_t)) {
        throw failure(exit_code::mismatch, "the peer is another version of this sample");
    }
    std::vector<std::uint64_t> numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t number = 0;
        std::memcpy(&number, bytes.data() + i * sizeof(number), sizeof(number));
        numbers[i] = be64toh(number);
    }
    return numbers;
}

peer_address exchange_addresses(peer_link& link, speaker self, sample_id sample,
                                const peer_address& mine,
                                const std::vector<agreed_option>& options) {
    std::vector<std::uint64_t> sent(at_options);
    sent[at_version] = protocol_version;
    sent[at_sample] = static_cast<std::uint64_t>(sample);
    sent[at_qp_number] = mine.qp.number;
    sent[at_first_psn] = mine.qp.first_psn;
    sent[at_lid] = mine.qp.lid;
    // A GID is kept in network order; be64toh and the packing bring it over as it is.
    sent[at_gid_prefix] = be64toh(mine.qp.gid.global.subnet_prefix);
    sent[at_gid_interface] = be64toh(mine.qp.gid.global.interface_id);
    sent[at_memory_address] = mine.memory.address;
    sent[at_memory_bytes] = mine.memory.bytes;
    sent[at_memory_key] = mine.memory.key;
    for (const auto& option : options) {
        sent.push_back(option.value);
    }
    if (self == speaker::client) {
        link.send(frame_type::hello, pack(sent));
    }
    const auto payload = link.receive(frame_type::hello);
    if (self == speaker::server) {
        link.send(frame_type::hello, pack(sent));
    }
    if (payload.size() < at_options * sizeof(std::uint64_t)) {
        throw failure(exit_code::mismatch, "the peer is another version of this sample");
    }
    const auto got = unpack(payload, payload.size() / sizeof(std::uint64_t));
    if (got[at_sample] != sent[at_sample]) {
        throw failure(exit_code::mismatch, "the peer runs another sample");
    }
    if (got[at_version] != protocol_version || got.size() != sent.size()) {
        throw failure(exit_code::mismatch, "the peer is another version of this sample");
    }
    for (std::size_t i = 0; i < options.size(); ++i) {
        const std::uint64_t theirs = got[at_options + i];
        if (theirs != options[i].value) {
            throw failure(exit_code::mismatch, "the two sides differ in " + options[i].name +
                                                   ": here " + std::to_string(options[i].value) +
                                                   ", at the peer " + std::to_string(theirs));
        }
    }

    peer_address peer;
    peer.qp.number = static_cast<std::uint32_t>(got[at_qp_number]);
    peer.qp.first_psn = static_cast<std::uint32_t>(got[at_first_psn]);
    peer.qp.lid = static_cast<std::uint16_t>(got[at_lid]);
    peer.qp.gid.global.subnet_prefix = htobe64(got[at_gid_prefix]);
    peer.qp.gid.global.interface_id = htobe64(got[at_gid_interface]);
    peer.memory = {got[at_memory_address], got[at_memory_bytes],
                   static_cast<std::uint32_t>(got[at_memory_key])};
    return peer;
}

void meet(peer_link& link) {
    link.send(frame_type::ready);
    static_cast<void>(link.receive(frame_type::ready));
}

} // namespace samples
