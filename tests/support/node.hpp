// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The raw kernel interface: the node of an HCA and a mapped region.
#ifndef TESTS_SUPPORT_NODE_HPP
#define TESTS_SUPPORT_NODE_HPP

#include <fcntl.h>
#include <rdma/hcamem.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unique_fd.hpp"

namespace support {

/// An open node. The calls named try_... return 0 or the errno.
class Node {
  public:
    /// Names of all nodes, such as "hcamem0".
    static std::vector<std::string> names();
    /// Name of the HCA that a node belongs to, from sysfs.
    static std::string ibdev_of(const std::string& name);
    /// Name of the node of an HCA.
    static std::optional<std::string> name_of(const std::string& ibdev);
    /// Path of the node of an HCA; throws if it has none.
    static std::string path_of(const std::string& ibdev);

    explicit Node(const std::string& ibdev = "rxe0", int flags = O_RDWR | O_CLOEXEC);
    explicit Node(UniqueFd fd) : fd_(std::move(fd)) {}

    [[nodiscard]] int fd() const { return fd_.get(); }
    void close() { fd_.reset(); }

    int try_info(hcamem_info& info) const;
    int try_create(hcamem_create& request) const;
    // "struct": the library has a function of that name.
    int try_export(struct hcamem_export& request) const;

    [[nodiscard]] hcamem_info info() const;
    /// Bytes held by everybody.
    [[nodiscard]] std::uint64_t total() const { return info().total_bytes; }
    /// The dma-buf of a range; offset receives where addr lies in it.
    UniqueFd export_range(const void* addr, std::size_t length,
                          std::uint64_t* offset = nullptr) const;

  private:
    UniqueFd fd_;
};

struct RegionKind {
    hcamem_mapping mapping = HCAMEM_MAPPING_PAGES;
    hcamem_fork fork = HCAMEM_FORK_POLICY_ZERO;
};

/// A request as the tests mostly need it.
hcamem_create create_request(std::uint64_t size, RegionKind kind = {});

/// A mapped region; unmaps what is left of it at the end.
class Region {
  public:
    /// CREATE and mmap(); throws std::system_error with what the kernel said.
    Region(const Node& node, std::uint64_t size, RegionKind kind = {});
    /// 0 or the errno of CREATE or mmap(); the region is given back at once.
    static int attempt(const Node& node, std::uint64_t size, RegionKind kind = {});

    Region(Region&& other) noexcept;
    Region& operator=(Region&& other) noexcept;
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    ~Region() { unmap(); }

    [[nodiscard]] unsigned char* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::span<unsigned char> bytes() const { return {data_, size_}; }
    /// munmap() of the whole range; parts that are gone already do no harm.
    void unmap();

  private:
    unsigned char* data_ = nullptr;
    std::size_t size_ = 0;
};

/// Fills with bytes that depend on position and seed, so that no page looks like another.
void fill(std::span<unsigned char> bytes, unsigned seed);
/// Offset of the first byte that fill() would not have written, or the size.
std::size_t first_difference(std::span<const unsigned char> bytes, unsigned seed,
                             std::size_t position = 0);
/// Whether fill() with this seed wrote these bytes, which began at position of the filled range.
bool holds(std::span<const unsigned char> bytes, unsigned seed, std::size_t position = 0);
bool all_equal(std::span<const unsigned char> bytes, unsigned char value);

} // namespace support

#endif
