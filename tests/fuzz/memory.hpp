// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the pages of a region must hold.
#ifndef TESTS_FUZZ_MEMORY_HPP
#define TESTS_FUZZ_MEMORY_HPP

#include <rdma/hcamem.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "random.hpp"

namespace fuzz {

constexpr std::size_t page_bytes = 4096;

/// What makes a page's content: four words that name region, page and version, and zeros between
/// them. A page of version `zeros` has zeros only.
using Version = std::uint32_t;
constexpr Version zeros = 0;
constexpr Version unknown = ~Version{0};

struct Word {
    std::size_t offset; ///< in the page
    std::uint64_t value;
};
std::array<Word, 4> words_of_page(std::uint64_t key, std::size_t page, Version version);

/// The content of one region of the driver (device), or of the private memory that a forked child
/// found in its place (anonymous). The versions of device pages are shared with all descendants,
/// since the pages are reached through descriptors they inherit; those of anonymous pages are
/// copied by fork() as the pages are.
class Memory {
  public:
    enum class Kind { device, anonymous };

    /// key: what names it in its pages
    /// fork: the region's policy
    Memory(std::uint64_t key, std::size_t pages, Kind kind, hcamem_fork fork);
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory();

    [[nodiscard]] std::uint64_t key() const { return key_; }
    [[nodiscard]] std::size_t pages() const { return pages_; }
    [[nodiscard]] bool device() const { return kind_ == Kind::device; }
    [[nodiscard]] hcamem_fork fork() const { return fork_; }

    [[nodiscard]] Version version(std::size_t page) const;
    void set_version(std::size_t page, Version version);
    void set_versions(std::size_t first, std::size_t count, Version version);

    /// From now on nobody may write: a process that does not share the versions can read it.
    void freeze();
    [[nodiscard]] bool frozen() const;

    /// Memory of another process, known by its key only: what a page holds is learned from its
    /// first look, and must be the same ever after.
    void make_foreign();
    [[nodiscard]] bool foreign() const { return foreign_; }

  private:
    std::uint64_t key_;
    std::size_t pages_;
    Kind kind_;
    hcamem_fork fork_;
    bool foreign_ = false;
    std::span<std::atomic<Version>> table_; // [0] frozen, then the pages
};

/// Looks at the page of the region that is mapped at an address, at the words that name it and at
/// one more. Gives back what is wrong, or nothing.
std::optional<std::string> check_page(std::uintptr_t address, Memory& memory, std::size_t page,
                                      Random& random);

/// All pages of memory that is mapped whole at an address.
std::optional<std::string> check_all(std::uintptr_t start, Memory& memory);

/// New memory, mapped whole, has to be zeros; its pages get the words that name them.
std::optional<std::string> fill_new(std::uintptr_t start, Memory& memory);

/// As check_page() for a copy of the page.
std::optional<std::string> check_copy(std::span<const unsigned char> bytes, const Memory& memory,
                                      std::size_t page, std::size_t offset);

} // namespace fuzz

#endif
