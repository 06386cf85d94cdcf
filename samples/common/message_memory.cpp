// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "message_memory.hpp"

#include "exit_codes.hpp"
#include "pool_memory.hpp"
#include "program.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <sys/mman.h>
#include <sys/resource.h>

namespace samples {
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

struct kind_name {
    memory_kind kind;
    const char* name;
};
constexpr std::array<kind_name, 3> kind_names{{{memory_kind::pool, "pool"},
                                               {memory_kind::malloc, "malloc"},
                                               {memory_kind::hugetlb, "hugetlb"}}};

// Memory of one buffer, given back when it goes.
class plain_block {
  public:
    plain_block(memory_kind kind, std::size_t bytes)
        : kind_(kind),
          size_(kind == memory_kind::hugetlb
                    ? (bytes + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes
                    : bytes),
          // The heap itself is what is compared. NOLINTNEXTLINE(cppcoreguidelines-no-malloc)
          data_(kind == memory_kind::hugetlb ? map_huge(size_) : std::calloc(1, size_)) {
        if (data_ == nullptr) {
            throw failure(exit_code::memory,
                          "cannot get " + std::to_string(size_) + " bytes of the heap");
        }
    }
    ~plain_block() {
        if (kind_ == memory_kind::hugetlb) {
            munmap(data_, size_);
        } else {
            std::free(data_); // NOLINT(cppcoreguidelines-no-malloc)
        }
    }
    plain_block(const plain_block&) = delete;
    plain_block& operator=(const plain_block&) = delete;
    plain_block(plain_block&&) = delete;
    plain_block& operator=(plain_block&&) = delete;

    [[nodiscard]] void* data() const { return data_; }

  private:
    static void* map_huge(std::size_t size) {
        void* address =
            mmap(nullptr, size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (21 << MAP_HUGE_SHIFT), -1, 0);
        if (address == MAP_FAILED) {
            throw failure(exit_code::memory,
                          with_errno("cannot map " + std::to_string(size / huge_page_bytes) +
                                     " huge pages of 2 MiB; reserve them in "
                                     "/proc/sys/vm/nr_hugepages"));
        }
        return address;
    }

    memory_kind kind_;
    std::size_t size_;
    void* data_;
};

struct deregister {
    void operator()(ibv_mr* region) const noexcept { ibv_dereg_mr(region); }
};

using region_owner = std::unique_ptr<ibv_mr, deregister>;

// The member order matters: the region is deregistered before its memory goes.
struct registered_block {
    std::unique_ptr<plain_block> block;
    region_owner region;
    std::size_t bytes;
};

std::string memlock_hint() {
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return "";
    }
    return " (RLIMIT_MEMLOCK is " + std::to_string(limit.rlim_cur) + " bytes, see ulimit -l)";
}

class plain_memory : public message_memory {
  public:
    plain_memory(memory_kind kind, const hca& device, int access)
        : kind_(kind), device_(device), access_(access) {}

    message_buffer make_buffer(std::size_t bytes) override {
        auto block = std::make_unique<plain_block>(kind_, bytes);
        auto* const data = static_cast<std::byte*>(block->data());
        region_owner region(ibv_reg_mr(device_.protection_domain(), data, bytes, access_));
        if (!region) {
            const int error = errno;
            throw failure(exit_code::memory,
                          with_errno("cannot register " + std::to_string(bytes) + " bytes", error) +
                              (error == ENOMEM || error == EAGAIN ? memlock_hint() : ""));
        }
        const message_buffer made{{data, bytes}, region->lkey, region->rkey};
        blocks_.push_back({std::move(block), std::move(region), bytes});
        return made;
    }

    [[nodiscard]] const char* registration() const override { return "user_pages"; }

    [[nodiscard]] std::vector<address_range> ranges() const override {
        std::vector<address_range> result;
        for (const auto& each : blocks_) {
            const auto begin = reinterpret_cast<std::uint64_t>(each.block->data());
            result.push_back({begin, begin + each.bytes});
        }
        return result;
    }

  private:
    memory_kind kind_;
    const hca& device_;
    int access_;
    std::vector<registered_block> blocks_;
};

} // namespace

const char* name_of(memory_kind kind) {
    for (const auto& each : kind_names) {
        if (each.kind == kind) {
            return each.name;
        }
    }
    return "unknown";
}

memory_kind parse_memory_kind(std::string_view option, std::string_view text) {
    for (const auto& each : kind_names) {
        if (text == each.name) {
            return each.kind;
        }
    }
    throw failure(exit_code::usage, std::string(option) + " '" + std::string(text) +
                                        "': must be pool, malloc or hugetlb");
}

ibv_sge message_buffer::sge(std::size_t offset, std::size_t length) const {
    return {reinterpret_cast<std::uint64_t>(bytes.data() + offset),
            static_cast<std::uint32_t>(length), lkey};
}

std::unique_ptr<message_memory> open_memory(memory_kind kind, const hca& device, int access) {
    if (kind == memory_kind::pool) {
        return open_pool_memory(device, access);
    }
    return std::make_unique<plain_memory>(kind, device, access);
}

} // namespace samples
