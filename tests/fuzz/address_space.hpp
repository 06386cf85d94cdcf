// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Which addresses of a process show which pages of which region.
#ifndef TESTS_FUZZ_ADDRESS_SPACE_HPP
#define TESTS_FUZZ_ADDRESS_SPACE_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "memory.hpp"
#include "random.hpp"

namespace fuzz {

/// Addresses in a row that show pages in a row, all treated alike.
struct Area {
    std::uintptr_t start = 0;
    std::size_t pages = 0;
    int prot = 0;
    std::shared_ptr<Memory> memory;
    std::size_t first = 0; ///< the page of the memory at start
    bool dontfork = false; ///< a child will find nothing here
    bool wiped = false;    ///< anonymous only: a child will find zeros

    [[nodiscard]] std::size_t bytes() const { return pages * page_bytes; }
    [[nodiscard]] std::uintptr_t end() const { return start + bytes(); }
};

/// Part of an area.
struct Range {
    std::uintptr_t start = 0;
    std::size_t pages = 0;

    [[nodiscard]] std::size_t bytes() const { return pages * page_bytes; }
    [[nodiscard]] std::uintptr_t end() const { return start + bytes(); }
};

class AddressSpace {
  public:
    [[nodiscard]] bool empty() const { return areas_.empty(); }
    [[nodiscard]] std::size_t size() const { return areas_.size(); }

    /// In place of whatever was there.
    void add(const Area& area);
    /// Forgets the range.
    void remove(Range range);
    /// Applies a change to just the range, of which each area has its part.
    void change(Range range, const std::function<void(Area&)>& change);
    void for_each(const std::function<void(const Area&)>& visit) const;
    /// A copy; must not be empty.
    [[nodiscard]] Area pick(Random& random) const;
    void clear() { areas_.clear(); }

  private:
    void split(std::uintptr_t at);

    std::map<std::uintptr_t, Area> areas_;
};

/// Some pages of an area: often all, often one end.
Range some_of(const Area& area, Random& random);

/// A stretch of addresses that belongs to the fuzzer alone, so that it can name addresses. What is
/// not an area in it is kept from everybody else.
class Arena {
  public:
    Arena();
    [[nodiscard]] bool holds(Range range) const;
    /// Keeps a range that was just unmapped; the parts outside of the arena are left alone.
    void reserve(Range range) const;
    /// Where that many pages fit, aligned to 2 MiB or to nothing but a page.
    [[nodiscard]] std::uintptr_t somewhere(std::size_t pages, Random& random) const;

  private:
    std::uintptr_t start_;
};

} // namespace fuzz

#endif
