// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_SUPPORT_MAPPED_MEMORY_HPP
#define BENCH_SUPPORT_MAPPED_MEMORY_HPP

#include <cstddef>
#include <new>

#include <sys/mman.h>

namespace bench {

/// Memory for peers that want to be given some. Page-wise from the kernel, as it is touched.
class mapped_memory {
  public:
    explicit mapped_memory(std::size_t bytes)
        : bytes_(bytes),
          address_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
        if (address_ == MAP_FAILED) {
            throw std::bad_alloc();
        }
    }
    mapped_memory(const mapped_memory&) = delete;
    mapped_memory& operator=(const mapped_memory&) = delete;
    mapped_memory(mapped_memory&&) = delete;
    mapped_memory& operator=(mapped_memory&&) = delete;
    ~mapped_memory() { munmap(address_, bytes_); }

    [[nodiscard]] void* address() const noexcept { return address_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  private:
    std::size_t bytes_;
    void* address_;
};

} // namespace bench

#endif
