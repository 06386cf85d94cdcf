// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An opened HCA port: device, protection domain, and the GID that packets carry.
#ifndef SAMPLES_COMMON_HCA_HPP
#define SAMPLES_COMMON_HCA_HPP

#include <cstdint>
#include <infiniband/verbs.h>
#include <memory>
#include <optional>
#include <string>

namespace samples {

/// What the command line says about the HCA.
struct hca_options {
    std::string name;             // empty: the first one found
    std::uint8_t port = 1;        // HCA ports count from 1
    std::optional<int> gid_index; // none: chosen on Ethernet, no GID on InfiniBand
};

class hca {
  public:
    /// Throws failure(exit_code::hca) with the reason: no such HCA, not permitted, port not active.
    explicit hca(const hca_options& options);

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] ibv_context* context() const noexcept { return context_.get(); }
    [[nodiscard]] ibv_pd* protection_domain() const noexcept { return pd_.get(); }
    [[nodiscard]] const ibv_device_attr& limits() const noexcept { return limits_; }
    [[nodiscard]] std::uint8_t port() const noexcept { return port_; }
    [[nodiscard]] std::uint16_t lid() const noexcept { return port_attributes_.lid; }
    [[nodiscard]] ibv_mtu active_mtu() const noexcept { return port_attributes_.active_mtu; }

    /// Bytes that one message can have.
    [[nodiscard]] std::uint64_t largest_message() const noexcept {
        return port_attributes_.max_msg_sz;
    }

    /// The local GID and its index; none on InfiniBand without --gid-idx.
    [[nodiscard]] const std::optional<int>& gid_index() const noexcept { return gid_index_; }
    [[nodiscard]] const ibv_gid& gid() const noexcept { return gid_; }

    /// Throws failure(exit_code::hca) "`what` ... is more than HCA name's limit".
    void require_at_most(const char* what, std::uint64_t value, std::uint64_t limit) const;

  private:
    struct close_context {
        void operator()(ibv_context* context) const noexcept { ibv_close_device(context); }
    };
    struct free_pd {
        void operator()(ibv_pd* pd) const noexcept { ibv_dealloc_pd(pd); }
    };

    void open(const std::string& name);
    void query_port();
    void choose_gid(const std::optional<int>& wanted);

    std::string name_;
    std::unique_ptr<ibv_context, close_context> context_;
    std::unique_ptr<ibv_pd, free_pd> pd_;
    ibv_device_attr limits_{};
    std::uint8_t port_;
    ibv_port_attr port_attributes_{};
    std::optional<int> gid_index_;
    ibv_gid gid_{};
};

/// Path MTU in bytes <-> its verbs code. mtu_from_bytes: none if it is not 256, 512, ... 4096.
[[nodiscard]] std::optional<ibv_mtu> mtu_from_bytes(std::uint64_t bytes);
[[nodiscard]] unsigned mtu_bytes(ibv_mtu mtu);

} // namespace samples

#endif
