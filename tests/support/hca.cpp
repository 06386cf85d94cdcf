// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "hca.hpp"

#include <iostream>
#include <stdexcept>

#include "guest.hpp"
#include "node.hpp"

namespace support {

namespace {

/// The IPv4 RoCE v2 GID is there once the HCA has heard of its address.
bool has_ipv4_gid(const std::string& name) {
    try {
        const std::string gid = read_text("/sys/class/infiniband/" + name + "/ports/1/gids/1");
        return gid.find("0000:0000:0000:0000:0000:ffff:") == 0;
    } catch (const std::system_error&) {
        return false;
    }
}

} // namespace

Hca::Hca(std::string name)
    : name_(std::move(name)), netdev_(read_text("/sys/class/infiniband/" + name_ + "/parent")) {
    netdev_.erase(netdev_.find_last_not_of('\n') + 1);
}

Hca::~Hca() {
    try {
        if (!present_) {
            add();
        }
    } catch (const std::exception& error) {
        std::cerr << "cannot bring " << name_ << " back: " << error.what() << '\n';
        std::abort();
    }
}

void Hca::remove() {
    must_shell("rdma link delete " + name_);
    present_ = false;
}

void Hca::add() {
    must_shell("rdma link add " + name_ + " type rxe netdev " + netdev_);
    present_ = true;
    if (!eventually([&] { return Node::name_of(name_).has_value() && has_ipv4_gid(name_); })) {
        throw std::runtime_error(name_ + " came back without node or GID");
    }
}

} // namespace support
