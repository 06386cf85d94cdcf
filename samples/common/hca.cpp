// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "hca.hpp"

#include "exit_codes.hpp"
#include "program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <unistd.h>
#include <vector>

namespace samples {
namespace {

using device_list = std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)>;

failure hca_failure(const std::string& line) {
    return {exit_code::hca, line};
}

ibv_device* find_device(ibv_device** devices, int count, const std::string& name) {
    std::string others;
    for (int i = 0; i < count; ++i) {
        if (name.empty() || name == ibv_get_device_name(devices[i])) {
            return devices[i];
        }
        others += std::string(others.empty() ? "" : ", ") + ibv_get_device_name(devices[i]);
    }
    if (name.empty()) {
        throw hca_failure("no HCA found on this machine");
    }
    throw hca_failure("no HCA named '" + name +
                      (others.empty() ? "': this machine has none" : "'; there are: " + others));
}

bool is_zero(const ibv_gid& gid) {
    return std::all_of(std::begin(gid.raw), std::end(gid.raw), [](auto byte) { return byte == 0; });
}

// ::ffff:a.b.c.d, the GID of an IPv4 address.
bool is_ipv4(const ibv_gid& gid) {
    constexpr std::array<std::uint8_t, 12> prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::equal(prefix.begin(), prefix.end(), gid.raw);
}

// RoCE v2 is routed like any UDP packet, and an IPv4 address is what people configure; so prefer
// v2 over v1 and IPv4 over IPv6.
int gid_preference(const ibv_gid_entry& entry) {
    return (entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 0) + (is_ipv4(entry.gid) ? 1 : 0);
}

} // namespace

hca::hca(const hca_options& options) : port_(options.port) {
    open(options.name);
    query_port();
    choose_gid(options.gid_index);
    pd_.reset(ibv_alloc_pd(context_.get()));
    if (!pd_) {
        throw hca_failure(with_errno("cannot allocate a protection domain on " + name_));
    }
}

void hca::open(const std::string& name) {
    int count = 0;
    const device_list devices(ibv_get_device_list(&count), ibv_free_device_list);
    if (!devices) {
        throw hca_failure(errno == ENOSYS
                              ? std::string("this kernel has no RDMA support loaded (ib_uverbs)")
                              : with_errno("cannot list the HCAs"));
    }
    ibv_device* device = find_device(devices.get(), count, name);
    name_ = ibv_get_device_name(device);
    context_.reset(ibv_open_device(device));
    if (!context_) {
        // libibverbs tries other ways after a refusal, so its errno may be of one of those.
        const int error = errno;
        const std::string node = std::string("/dev/infiniband/") + device->dev_name;
        const bool refused = access(node.c_str(), R_OK | W_OK) != 0;
        throw hca_failure(
            with_errno("cannot open HCA " + name_ + " (" + node + ")", refused ? errno : error));
    }
    const int error = ibv_query_device(context_.get(), &limits_);
    if (error != 0) {
        throw hca_failure(with_errno("cannot query HCA " + name_, error));
    }
}

void hca::query_port() {
    if (port_ > limits_.phys_port_cnt) {
        throw hca_failure("HCA " + name_ + " has no port " + std::to_string(port_) + ", only " +
                          std::to_string(limits_.phys_port_cnt));
    }
    const std::string port = "port " + std::to_string(port_) + " of HCA " + name_;
    const int error = ibv_query_port(context_.get(), port_, &port_attributes_);
    if (error != 0) {
        throw hca_failure(with_errno("cannot query " + port, error));
    }
    if (port_attributes_.state != IBV_PORT_ACTIVE) {
        throw hca_failure(port + " is not active: " + ibv_port_state_str(port_attributes_.state));
    }
}

void hca::choose_gid(const std::optional<int>& wanted) {
    const std::string port = "port " + std::to_string(port_) + " of HCA " + name_;
    if (wanted) {
        if (*wanted >= port_attributes_.gid_tbl_len) {
            throw hca_failure(port + " has no GID index " + std::to_string(*wanted) +
                              ", only 0 to " + std::to_string(port_attributes_.gid_tbl_len - 1));
        }
        if (ibv_query_gid(context_.get(), port_, *wanted, &gid_) != 0 || is_zero(gid_)) {
            throw hca_failure("GID index " + std::to_string(*wanted) + " of " + port + " is empty");
        }
        gid_index_ = wanted;
        return;
    }
    if (port_attributes_.link_layer != IBV_LINK_LAYER_ETHERNET) {
        return;
    }
    std::vector<ibv_gid_entry> table(static_cast<std::size_t>(port_attributes_.gid_tbl_len));
    const ssize_t found = ibv_query_gid_table(context_.get(), table.data(), table.size(), 0);
    if (found < 0) {
        throw hca_failure(
            with_errno("cannot read the GIDs of HCA " + name_, static_cast<int>(-found)));
    }
    table.resize(static_cast<std::size_t>(found));
    std::erase_if(
        table, [this](const auto& entry) { return entry.port_num != port_ || is_zero(entry.gid); });
    // max_element gives the first of equals.
    const auto best =
        std::max_element(table.begin(), table.end(), [](const auto& a, const auto& b) {
            return gid_preference(a) < gid_preference(b);
        });
    if (best == table.end()) {
        throw hca_failure(port + " has no GID; does its network device have an address?");
    }
    gid_index_ = static_cast<int>(best->gid_index);
    gid_ = best->gid;
}

void hca::require_at_most(const char* what, std::uint64_t value, std::uint64_t limit) const {
    if (value > limit) {
        throw hca_failure(std::string(what) + " " + std::to_string(value) + " is more than HCA " +
                          name_ + " allows: " + std::to_string(limit));
    }
}

std::optional<ibv_mtu> mtu_from_bytes(std::uint64_t bytes) {
    for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
        if (mtu_bytes(mtu) == bytes) {
            return mtu;
        }
    }
    return std::nullopt;
}

unsigned mtu_bytes(ibv_mtu mtu) {
    return 128U << static_cast<unsigned>(mtu);
}

} // namespace samples
