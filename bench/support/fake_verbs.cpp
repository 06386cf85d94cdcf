// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "support/fake_verbs.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>

// A macro in the header, for calls.
#undef ibv_reg_mr

namespace {

ibv_mr* make_mr(ibv_pd* domain, void* address, std::size_t bytes) {
    static std::atomic<std::uint32_t> next_key{0x1000};
    auto* mr = new ibv_mr{};
    mr->context = domain->context;
    mr->pd = domain;
    mr->addr = address;
    mr->length = bytes;
    mr->lkey = next_key.fetch_add(1);
    mr->rkey = mr->lkey;
    return mr;
}

} // namespace

extern "C" {

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t bytes, int /*access*/) {
    return make_mr(domain, address, bytes);
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t bytes, std::uint64_t /*iova*/,
                         unsigned /*access*/) {
    return make_mr(domain, address, bytes);
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t /*offset*/, size_t bytes,
                          std::uint64_t iova, int /*descriptor*/, int /*access*/) {
    return make_mr(domain, reinterpret_cast<void*>(iova), bytes);
}

int ibv_dereg_mr(ibv_mr* mr) {
    delete mr;
    return 0;
}

} // extern "C"

namespace bench {

ibv_pd* fake_domain() {
    static ibv_device device{};
    static ibv_context context{};
    static ibv_pd domain{};
    std::strncpy(device.name, "fake0", sizeof device.name - 1);
    std::strncpy(device.dev_name, "uverbs-fake", sizeof device.dev_name - 1);
    context.device = &device;
    context.cmd_fd = -1;
    domain.context = &context;
    return &domain;
}

} // namespace bench
