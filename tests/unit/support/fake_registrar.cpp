// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "support/fake_registrar.hpp"

#include "api/attach.h"
#include "error/message.h"

namespace unit {
namespace {

using hcamem::core::registration;

class fake_registrar final : public hcamem::core::registrar {
  public:
    explicit fake_registrar(fake_domain& domain) : domain_(domain) {}

    int add(hcamem::core::exporter& /*from*/, void* address, std::size_t bytes,
            registration& made) override {
        return domain_.add(address, bytes, made);
    }
    int remove(const registration& made) override { return domain_.remove(made); }
    [[nodiscard]] std::uint32_t access() const noexcept override { return IBV_ACCESS_LOCAL_WRITE; }

  private:
    fake_domain& domain_;
};

} // namespace

void fake_domain::fail_registration(std::size_t n, int error, bool all) {
    const std::lock_guard guard(lock_);
    fail_at_ = attempts_ + n;
    fail_error_ = error;
    fail_all_ = all;
}

void fake_domain::fail_deregistration(int error) {
    const std::lock_guard guard(lock_);
    deregistration_error_ = error;
}

std::size_t fake_domain::registered() const {
    const std::lock_guard guard(lock_);
    return mrs_.size();
}

std::size_t fake_domain::registered_bytes() const {
    const std::lock_guard guard(lock_);
    std::size_t bytes = 0;
    for (const auto& [key, mr] : mrs_) {
        bytes += mr->length;
    }
    return bytes;
}

std::size_t fake_domain::attempts() const {
    const std::lock_guard guard(lock_);
    return attempts_;
}

bool fake_domain::covers(const void* address, std::uint32_t lkey) const {
    const std::lock_guard guard(lock_);
    const auto found = mrs_.find(lkey);
    if (found == mrs_.end()) {
        return false;
    }
    const auto* begin = static_cast<const std::byte*>(found->second->addr);
    const auto* here = static_cast<const std::byte*>(address);
    return here >= begin && here < begin + found->second->length;
}

int fake_domain::add(void* address, std::size_t bytes, registration& made) {
    if (on_registration_) {
        on_registration_();
    }
    const std::lock_guard guard(lock_);
    ++attempts_;
    if (fail_error_ != 0 && (attempts_ == fail_at_ || (fail_all_ && attempts_ > fail_at_))) {
        return hcamem::core::fail(fail_error_, "the fake HCA refuses");
    }
    auto mr = std::make_unique<ibv_mr>();
    mr->addr = address;
    mr->length = bytes;
    mr->lkey = ++next_key_;
    mr->rkey = mr->lkey + 0x100000;
    made = {mr.get(), mr->lkey, mr->rkey, HCAMEM_PATH_DMABUF};
    mrs_.emplace(mr->lkey, std::move(mr));
    return 0;
}

int fake_domain::remove(const registration& made) {
    const std::lock_guard guard(lock_);
    if (deregistration_error_ != 0) {
        return hcamem::core::fail(deregistration_error_, "the fake HCA keeps it");
    }
    return mrs_.erase(made.lkey) == 1 ? 0 : hcamem::core::fail(EINVAL, "not registered");
}

std::unique_ptr<hcamem::core::registrar> make_registrar(fake_domain& domain) {
    return std::make_unique<fake_registrar>(domain);
}

int attach(hcamem_pool* pool, fake_domain& domain, hcamem_binding** binding) {
    return hcamem::core::attach_with(pool, make_registrar(domain), binding);
}

} // namespace unit
