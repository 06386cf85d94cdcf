// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "job.hpp"

#include "../common/exit_codes.hpp"

#include <endian.h>

namespace samples {
namespace {

// As it travels: number, first packet number, LID, and the GID in two halves.
constexpr std::size_t numbers_per_address = 5;

void append(std::vector<std::uint64_t>& numbers, const qp_address& address) {
    numbers.insert(numbers.end(), {address.number, address.first_psn, address.lid,
                                   be64toh(address.gid.global.subnet_prefix),
                                   be64toh(address.gid.global.interface_id)});
}

std::vector<std::byte> packed(const std::vector<qp_address>& addresses) {
    std::vector<std::uint64_t> numbers;
    for (const auto& address : addresses) {
        append(numbers, address);
    }
    return pack(numbers);
}

std::vector<qp_address> unpacked(const std::vector<std::byte>& bytes, std::size_t count) {
    const auto numbers = unpack(bytes, count * numbers_per_address);
    std::vector<qp_address> addresses(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t* number = &numbers[i * numbers_per_address];
        addresses[i].number = static_cast<std::uint32_t>(number[0]);
        addresses[i].first_psn = static_cast<std::uint32_t>(number[1]);
        addresses[i].lid = static_cast<std::uint16_t>(number[2]);
        addresses[i].gid.global.subnet_prefix = htobe64(number[3]);
        addresses[i].gid.global.interface_id = htobe64(number[4]);
    }
    return addresses;
}

} // namespace

job::job(speaker self, std::vector<peer_link> links, const std::vector<agreed_option>& options)
    : links_(std::move(links)) {
    try {
        introduce(self, options);
    } catch (const std::exception& reason) {
        give_up(reason.what());
        throw;
    }
}

void job::introduce(speaker self, const std::vector<agreed_option>& options) {
    // Addresses come once the ranks are known.
    for_each_link([&](peer_link& link, unsigned) {
        static_cast<void>(exchange_addresses(link, self, sample_id::eager_pool, {}, options));
    });
    if (self == speaker::client) {
        const auto told = unpack(links_.front().receive(frame_type::hello), 2);
        rank_ = static_cast<unsigned>(told[0]);
        size_ = static_cast<unsigned>(told[1]);
        return;
    }
    size_ = static_cast<unsigned>(links_.size()) + 1;
    for_each_link([this](peer_link& link, unsigned rank) {
        link.send(frame_type::hello, pack({rank, size_}));
    });
}

void job::for_each_link(const std::function<void(peer_link&, unsigned)>& do_it) {
    for (std::size_t i = 0; i < links_.size(); ++i) {
        if (links_.size() == 1) {
            do_it(links_[i], 1); // there is only one that "the peer" can be
            continue;
        }
        const auto rank = static_cast<unsigned>(i) + 1;
        try {
            do_it(links_[i], rank);
        } catch (const interrupted&) {
            throw;
        } catch (const failure& reason) {
            throw failure(static_cast<exit_code>(reason.code()),
                          "rank " + std::to_string(rank) + ": " + reason.what());
        }
    }
}

std::vector<qp_address> job::exchange(const std::vector<qp_address>& mine) {
    if (rank_ != 0) {
        links_.front().send(frame_type::hello, packed(mine));
        return unpacked(links_.front().receive(frame_type::hello), size_);
    }
    std::vector<std::vector<qp_address>> all{mine};
    for_each_link([&](peer_link& link, unsigned) {
        all.push_back(unpacked(link.receive(frame_type::hello), size_));
    });
    const auto meant_for = [&all](unsigned rank) {
        std::vector<qp_address> column;
        column.reserve(all.size());
        for (const auto& row : all) {
            column.push_back(row[rank]);
        }
        return column;
    };
    for_each_link([&](peer_link& link, unsigned rank) {
        link.send(frame_type::hello, packed(meant_for(rank)));
    });
    return meant_for(0);
}

void job::meet() {
    if (rank_ != 0) {
        samples::meet(links_.front());
        return;
    }
    for_each_link(
        [](peer_link& link, unsigned) { static_cast<void>(link.receive(frame_type::ready)); });
    for_each_link([](peer_link& link, unsigned) { link.send(frame_type::ready); });
}

std::uint64_t job::sum(std::uint64_t mine) {
    if (rank_ != 0) {
        links_.front().send(frame_type::result, pack({mine}));
        return unpack(links_.front().receive(frame_type::result), 1).front();
    }
    for_each_link([&mine](peer_link& link, unsigned) {
        mine += unpack(link.receive(frame_type::result), 1).front();
    });
    for_each_link(
        [mine](peer_link& link, unsigned) { link.send(frame_type::result, pack({mine})); });
    return mine;
}

void job::check() {
    for_each_link([](peer_link& link, unsigned) { link.check(); });
}

void job::check_for(std::chrono::milliseconds grace) {
    const auto share = grace / links_.size();
    for_each_link([share](peer_link& link, unsigned) { link.check_for(share); });
    check();
}

void job::give_up(std::string_view reason) const noexcept {
    for (const auto& link : links_) {
        link.give_up(reason);
    }
}

} // namespace samples
