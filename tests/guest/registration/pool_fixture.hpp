// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Pools on an HCA of the guest, and places in them for work requests.
#ifndef TESTS_GUEST_REGISTRATION_POOL_FIXTURE_HPP
#define TESTS_GUEST_REGISTRATION_POOL_FIXTURE_HPP

#include <hcamem/binding.hpp>
#include <hcamem/buffer.hpp>
#include <hcamem/pool.hpp>

#include "support/guest.hpp"
#include "support/node.hpp"
#include "support/rdma.hpp"

/// A pool from the device, not from ordinary memory.
inline hcamem::options device_options(const char* hca = "rxe0") {
    hcamem::options options;
    options.source = HCAMEM_DEVICE;
    options.hca = hca;
    options.initial = 2 * support::MiB;
    options.maximum = 256 * support::MiB;
    return options;
}

inline hcamem::pool device_pool(const char* hca = "rxe0") {
    return hcamem::pool(device_options(hca));
}

/// The path that this boot's soft-RoCE has for pool memory.
inline std::uint32_t expected_path() {
    return support::rxe_imports_dma_bufs() ? HCAMEM_PATH_DMABUF : HCAMEM_PATH_USER_PAGES;
}

inline std::span<unsigned char> bytes_of(const hcamem::buffer& buffer) {
    return {reinterpret_cast<unsigned char*>(buffer.data()), buffer.size()};
}

inline support::Place place(const hcamem::binding& binding, const void* address,
                            std::size_t bytes) {
    return {address, bytes, binding.lkey(address), binding.rkey(address)};
}

inline support::Place place(const hcamem::binding& binding, const hcamem::buffer& buffer) {
    return place(binding, buffer.data(), buffer.size());
}

#endif
