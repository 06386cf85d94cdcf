// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "candidates/anonymous.hpp"

#include <stdexcept>

#include <sys/mman.h>

#include "support/failure.hpp"
#include "support/guest.hpp"

namespace bench {
namespace {

using support::huge_size;

constexpr const char* huge_pages = "/proc/sys/vm/nr_hugepages";

constexpr std::size_t whole_huge_pages(std::size_t bytes) {
    return (bytes + huge_size - 1) / huge_size * huge_size;
}

} // namespace

malloc_candidate::malloc_candidate(const support::Pd& pd)
    : pinned_candidate("malloc, 4 KiB pages + ibv_reg_mr", pd) {}

std::byte* malloc_candidate::obtain(std::size_t bytes) {
    data_ = map(bytes, MAP_PRIVATE | MAP_ANONYMOUS);
    support::must(madvise(data_, bytes, MADV_NOHUGEPAGE), "MADV_NOHUGEPAGE");
    bytes_ = mapped_ = bytes;
    return data_;
}

thp_candidate::thp_candidate(const support::Pd& pd)
    : pinned_candidate("malloc, transparent huge pages + ibv_reg_mr", pd) {}

std::string thp_candidate::unfit(std::size_t bytes) const {
    return bytes < huge_size ? "smaller than a huge page" : "";
}

std::byte* thp_candidate::obtain(std::size_t bytes) {
    std::byte* const wide = map(bytes + huge_size, MAP_PRIVATE | MAP_ANONYMOUS);
    const std::size_t head =
        (huge_size - reinterpret_cast<std::uintptr_t>(wide) % huge_size) % huge_size;
    if (head != 0) {
        support::must(munmap(wide, head), "munmap");
    }
    if (head != huge_size) {
        support::must(munmap(wide + head + bytes, huge_size - head), "munmap");
    }
    data_ = wide + head;
    bytes_ = mapped_ = bytes;
    support::must(madvise(data_, bytes, MADV_HUGEPAGE), "MADV_HUGEPAGE");
    return data_;
}

hugetlb_candidate::hugetlb_candidate(const support::Pd& pd)
    : pinned_candidate("hugetlbfs 2 MiB + ibv_reg_mr", pd) {}

void hugetlb_candidate::prepare(std::size_t bytes) {
    const std::size_t wanted = whole_huge_pages(bytes) / huge_size;
    support::write_text(huge_pages, std::to_string(wanted));
    if (support::read_number(huge_pages) < wanted) {
        throw std::runtime_error("the guest has no " + std::to_string(wanted) +
                                 " huge pages: give it more memory");
    }
}

void hugetlb_candidate::finish() {
    support::write_text(huge_pages, "0");
}

std::byte* hugetlb_candidate::obtain(std::size_t bytes) {
    bytes_ = bytes;
    mapped_ = whole_huge_pages(bytes);
    // Shared: fork() would copy registered pages of a private mapping, and fails with ENOMEM
    // where the administrator did not set aside as many again.
    data_ = map(mapped_, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB);
    return data_;
}

} // namespace bench
