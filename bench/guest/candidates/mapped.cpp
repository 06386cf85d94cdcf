// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "candidates/mapped.hpp"

#include <utility>

#include <sys/mman.h>

#include "support/failure.hpp"
#include "verbs/uverbs_mr.h"

namespace bench {

std::byte* map(std::size_t bytes, int flags, int descriptor, std::int64_t offset) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, offset);
    if (memory == MAP_FAILED) {
        support::fail("mmap");
    }
    return static_cast<std::byte*>(memory);
}

keys pinned_candidate::enroll() {
    mr_ = ibv_reg_mr(pd_.get(), data_, bytes_, static_cast<unsigned>(support::remote_access));
    if (mr_ == nullptr) {
        support::fail("ibv_reg_mr");
    }
    return {mr_->lkey, mr_->rkey};
}

void pinned_candidate::withdraw() {
    if (const int error = ibv_dereg_mr(std::exchange(mr_, nullptr))) {
        support::fail("ibv_dereg_mr", error);
    }
}

void pinned_candidate::release() {
    support::must(munmap(std::exchange(data_, nullptr), mapped_), "munmap");
}

keys dmabuf_candidate::enroll() {
    std::uint64_t offset = 0;
    const support::UniqueFd exported = dmabuf(offset);
    const hcamem::core::dmabuf_range range{exported.get(), offset, data_, bytes_};
    if (const int error = hcamem::core::uverbs_reg_dmabuf_mr(
            pd_.get(), driver_id_, range, static_cast<std::uint32_t>(support::remote_access),
            &mr_)) {
        support::fail("registration of a dma-buf", error);
    }
    return {mr_.lkey, mr_.rkey};
}

void dmabuf_candidate::withdraw() {
    if (const int error = hcamem::core::uverbs_dereg_mr(&mr_, driver_id_)) {
        support::fail("deregistration of a dma-buf", error);
    }
}

void dmabuf_candidate::release() {
    support::must(munmap(std::exchange(data_, nullptr), bytes_), "munmap");
}

} // namespace bench
