// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A protection domain without an HCA: it keeps a list of what is registered, gives
// keys, and fails when told to.
#ifndef TESTS_UNIT_SUPPORT_FAKE_REGISTRAR_HPP
#define TESTS_UNIT_SUPPORT_FAKE_REGISTRAR_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include <infiniband/verbs.h>

#include <hcamem.h>

#include "verbs/registrar.h"

namespace unit {

/// What the "HCA" knows, shared between the test and the registrars it gave to pools.
class fake_domain {
  public:
    /// The n-th registration from now on fails with this errno (n = 1: the next one), and so
    /// do those behind it if `all` is set.
    void fail_registration(std::size_t n, int error, bool all = false);
    void fail_deregistration(int error); // 0: succeed again
    /// Called at each registration from now on, in the thread that registers.
    void on_registration(std::function<void()> call) { on_registration_ = std::move(call); }

    [[nodiscard]] std::size_t registered() const;       // slabs
    [[nodiscard]] std::size_t registered_bytes() const; // in them
    [[nodiscard]] std::size_t attempts() const;
    /// Whether this key is that of a slab that holds the address.
    [[nodiscard]] bool covers(const void* address, std::uint32_t lkey) const;

    int add(void* address, std::size_t bytes, hcamem::core::registration& made);
    int remove(const hcamem::core::registration& made);

  private:
    mutable std::mutex lock_;
    std::map<std::uint32_t, std::unique_ptr<ibv_mr>> mrs_; // by lkey
    std::uint32_t next_key_ = 0x1000;
    std::size_t attempts_ = 0;
    std::size_t fail_at_ = 0; // of attempts_
    bool fail_all_ = false;
    int fail_error_ = 0;
    int deregistration_error_ = 0;
    std::function<void()> on_registration_;
};

/// For the fake domain, which must outlive it.
std::unique_ptr<hcamem::core::registrar> make_registrar(fake_domain& domain);

/// hcamem_attach() to the fake domain, which must outlive the binding.
int attach(hcamem_pool* pool, fake_domain& domain, hcamem_binding** binding);

} // namespace unit

#endif
