// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Every wrong call gets its errno and leaves nothing behind.
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <string>

#include "kinds.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

/// Checks that a test left no byte charged and no descriptor open.
class BadInput : public testing::Test {
  protected:
    void SetUp() override {
        bytes_ = node_.total();
        descriptors_ = open_descriptors();
    }
    void TearDown() override {
        EXPECT_TRUE(eventually([&] { return node_.total() == bytes_; })) << node_.total() - bytes_;
        EXPECT_EQ(open_descriptors(), descriptors_);
    }

    int map_errno(std::size_t length, int prot, int flags, std::uint64_t offset) const {
        void* mapped = mmap(nullptr, length, prot, flags, node_.fd(), static_cast<off_t>(offset));
        if (mapped == MAP_FAILED) {
            return errno;
        }
        munmap(mapped, length);
        return 0;
    }

    int create_errno(std::uint64_t size, std::uint32_t mapping, std::uint32_t fork,
                     std::uint32_t flags = 0, std::uint64_t offset = 0) const {
        hcamem_create request{};
        request.size = size;
        request.mapping = mapping;
        request.fork = fork;
        request.numa_node = -1;
        request.flags = flags;
        request.offset = offset;
        return node_.try_create(request);
    }

    int export_errno(const void* addr, std::uint64_t length, std::uint32_t flags = 0) const {
        hcamem_export request{};
        request.addr = reinterpret_cast<std::uintptr_t>(addr);
        request.length = length;
        request.flags = flags;
        return node_.try_export(request);
    }

    int raw(unsigned long request, void* argument) const {
        return ioctl(node_.fd(), request, argument) < 0 ? errno : 0;
    }

    const Node node_;

  private:
    std::uint64_t bytes_ = 0;
    std::size_t descriptors_ = 0;
};

constexpr int rw = PROT_READ | PROT_WRITE;

/// An address that the kernel can read but not write.
class ReadOnlyPage {
  public:
    explicit ReadOnlyPage(const void* content, std::size_t size)
        : page_(mmap(nullptr, page_size, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        std::memcpy(page_, content, size);
        mprotect(page_, page_size, PROT_READ);
    }
    ReadOnlyPage(const ReadOnlyPage&) = delete;
    ReadOnlyPage& operator=(const ReadOnlyPage&) = delete;
    ~ReadOnlyPage() { munmap(page_, page_size); }
    [[nodiscard]] void* get() const { return page_; }

  private:
    void* page_;
};

/// A request of ours with another structure length.
unsigned long resized(unsigned long request, unsigned size) {
    return _IOC(_IOC_DIR(request), _IOC_TYPE(request), _IOC_NR(request), size);
}

} // namespace

TEST_F(BadInput, mmap_of_length_0) {
    EXPECT_EQ(map_errno(0, rw, MAP_SHARED, 0), EINVAL);
}

TEST_F(BadInput, mmap_of_half_the_address_space) {
    const std::size_t half = ~(~std::size_t{0} >> 1); // 2^63, or 2^31 for a 32-bit program
    const int error = map_errno(half, rw, MAP_SHARED, 0);
    if (sizeof(std::size_t) == 8) {
        EXPECT_EQ(error, ENOMEM);
    } else {
        EXPECT_TRUE(error == ENOMEM || error == EFBIG) << std::strerror(error);
    }
}

TEST_F(BadInput, bare_mmap_over_its_limit) {
    EXPECT_EQ(map_errno(HCAMEM_BARE_MMAP_MAX + 1, rw, MAP_SHARED, 0), EFBIG);
    EXPECT_EQ(map_errno(HCAMEM_BARE_MMAP_MAX + page_size, rw, MAP_SHARED, 0), EFBIG);
}

TEST_F(BadInput, private_mapping) {
    EXPECT_EQ(map_errno(page_size, rw, MAP_PRIVATE, 0), EINVAL);
    EXPECT_EQ(map_errno(page_size, PROT_READ, MAP_PRIVATE, 0), EINVAL);
}

TEST_F(BadInput, executable_mapping) {
    EXPECT_EQ(map_errno(page_size, rw | PROT_EXEC, MAP_SHARED, 0), EPERM);
    EXPECT_EQ(map_errno(page_size, PROT_EXEC, MAP_SHARED, 0), EPERM);
}

TEST_F(BadInput, making_a_mapping_executable_later) {
    for (const hcamem_mapping mapping : {HCAMEM_MAPPING_HUGE, HCAMEM_MAPPING_PAGES}) {
        const Region region(node_, huge_size, {mapping, HCAMEM_FORK_POLICY_ZERO});
        EXPECT_EQ(mprotect(region.data(), region.size(), PROT_READ | PROT_EXEC), -1);
        EXPECT_EQ(errno, EACCES);
    }
}

TEST_F(BadInput, mmap_at_offsets_that_are_no_regions) {
    EXPECT_EQ(map_errno(page_size, rw, MAP_SHARED, page_size), ENXIO);
    EXPECT_EQ(map_errno(page_size, rw, MAP_SHARED, std::uint64_t{1} << 40), ENXIO);
}

TEST_F(BadInput, mmap_at_odd_offsets) {
    // Not even a page: the C library or the core refuses.
    EXPECT_EQ(map_errno(page_size, rw, MAP_SHARED, 1), EINVAL);
    hcamem_create request = create_request(huge_size, {});
    const Node own;
    ASSERT_EQ(own.try_create(request), 0);
    for (const std::uint64_t shift : {page_size, huge_size, std::size_t{64} * MiB}) {
        void* mapped = mmap(nullptr, huge_size, rw, MAP_SHARED, own.fd(),
                            static_cast<off_t>(request.offset + shift));
        EXPECT_EQ(mapped, MAP_FAILED) << shift;
        EXPECT_EQ(errno, ENXIO) << shift;
    }
}

TEST_F(BadInput, mmap_of_another_length_than_the_region_has) {
    const Node own;
    hcamem_create request = create_request(huge_size, {});
    ASSERT_EQ(own.try_create(request), 0);
    const auto offset = static_cast<off_t>(request.offset);
    for (const std::size_t length : {page_size, huge_size - page_size, huge_size + page_size}) {
        EXPECT_EQ(mmap(nullptr, length, rw, MAP_SHARED, own.fd(), offset), MAP_FAILED);
        EXPECT_EQ(errno, EINVAL) << length;
    }
    // The refusals did not use the region up.
    void* mapped = mmap(nullptr, huge_size, rw, MAP_SHARED, own.fd(), offset);
    ASSERT_NE(mapped, MAP_FAILED);
    munmap(mapped, huge_size);
}

TEST_F(BadInput, wrong_flags_do_not_use_a_region_up) {
    const Node own;
    hcamem_create request = create_request(page_size, {});
    ASSERT_EQ(own.try_create(request), 0);
    const auto offset = static_cast<off_t>(request.offset);
    EXPECT_EQ(mmap(nullptr, page_size, rw, MAP_PRIVATE, own.fd(), offset), MAP_FAILED);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(mmap(nullptr, page_size, rw | PROT_EXEC, MAP_SHARED, own.fd(), offset), MAP_FAILED);
    EXPECT_EQ(errno, EPERM);
    void* mapped = mmap(nullptr, page_size, rw, MAP_SHARED, own.fd(), offset);
    ASSERT_NE(mapped, MAP_FAILED);
    munmap(mapped, page_size);
}

TEST_F(BadInput, another_files_region) {
    const Node own;
    hcamem_create request = create_request(page_size, {});
    ASSERT_EQ(own.try_create(request), 0);
    EXPECT_EQ(map_errno(page_size, rw, MAP_SHARED, request.offset), ENXIO);
}

TEST_F(BadInput, node_opened_read_only) {
    const Node reader("rxe0", O_RDONLY | O_CLOEXEC);
    hcamem_info info{};
    EXPECT_EQ(reader.try_info(info), 0);
    hcamem_create request = create_request(page_size, {});
    EXPECT_EQ(reader.try_create(request), EBADF);
    EXPECT_EQ(mmap(nullptr, page_size, rw, MAP_SHARED, reader.fd(), 0), MAP_FAILED);
    EXPECT_EQ(errno, EACCES);
    EXPECT_EQ(mmap(nullptr, page_size, PROT_READ, MAP_SHARED, reader.fd(), 0), MAP_FAILED);
    EXPECT_EQ(errno, EACCES);
    const Region region(node_, page_size);
    hcamem_export out{};
    out.addr = reinterpret_cast<std::uintptr_t>(region.data());
    out.length = page_size;
    EXPECT_EQ(reader.try_export(out), EBADF);
}

TEST_F(BadInput, node_opened_write_only) {
    const Node writer("rxe0", O_WRONLY | O_CLOEXEC);
    hcamem_create request = create_request(page_size, {});
    EXPECT_EQ(writer.try_create(request), EBADF);
    EXPECT_EQ(mmap(nullptr, page_size, PROT_WRITE, MAP_SHARED, writer.fd(), 0), MAP_FAILED);
    EXPECT_EQ(errno, EACCES);
}

TEST_F(BadInput, create_of_sizes_that_cannot_be) {
    EXPECT_EQ(create_errno(0, HCAMEM_MAPPING_PAGES, 0), EINVAL);
    for (const std::uint64_t size :
         {std::uint64_t{1} << 62, (std::uint64_t{1} << 63) - page_size,
          (std::uint64_t{1} << 63) - 1, std::uint64_t{1} << 63, (std::uint64_t{1} << 63) + 1,
          ~std::uint64_t{0} - page_size, ~std::uint64_t{0} - page_size + 1, ~std::uint64_t{0} - 1,
          ~std::uint64_t{0}}) {
        for (const std::uint32_t mapping : {HCAMEM_MAPPING_HUGE, HCAMEM_MAPPING_PAGES}) {
            const int error = create_errno(size, mapping, 0);
            EXPECT_TRUE(error == EDQUOT || error == ENOMEM || error == EINVAL)
                << size << ": " << std::strerror(error);
        }
    }
}

TEST_F(BadInput, create_with_unknown_choices) {
    EXPECT_EQ(create_errno(page_size, 0, 0), EINVAL);
    EXPECT_EQ(create_errno(page_size, 3, 0), EINVAL);
    EXPECT_EQ(create_errno(page_size, ~0U, 0), EINVAL);
    EXPECT_EQ(create_errno(page_size, HCAMEM_MAPPING_PAGES, 3), EINVAL);
    EXPECT_EQ(create_errno(page_size, HCAMEM_MAPPING_PAGES, ~0U), EINVAL);
    EXPECT_EQ(create_errno(page_size, HCAMEM_MAPPING_PAGES, 0, 1), EINVAL);
    EXPECT_EQ(create_errno(page_size, HCAMEM_MAPPING_PAGES, 0, 1U << 31), EINVAL);
    EXPECT_EQ(create_errno(page_size, HCAMEM_MAPPING_PAGES, 0, 0, page_size), EINVAL);
}

TEST_F(BadInput, unknown_requests) {
    std::array<unsigned char, 512> space{};
    for (unsigned nr = 3; nr < 256; ++nr) {
        ASSERT_EQ(raw(_IOWR(HCAMEM_IOC_MAGIC, nr, hcamem_create), space.data()), ENOTTY) << nr;
    }
    EXPECT_EQ(raw(_IOWR('x', 1, hcamem_create), space.data()), ENOTTY);
    EXPECT_EQ(raw(0, space.data()), ENOTTY);
    EXPECT_EQ(raw(~0UL, space.data()), ENOTTY);
}

TEST_F(BadInput, structures_that_are_too_short) {
    std::array<unsigned char, 512> space{};
    for (const unsigned size : {0U, 1U, 8U, unsigned{sizeof(hcamem_create)} - 1}) {
        EXPECT_EQ(raw(resized(HCAMEM_IOC_CREATE, size), space.data()), EINVAL) << size;
    }
    for (const unsigned size : {0U, 1U, 8U, unsigned{sizeof(hcamem_export)} - 1}) {
        EXPECT_EQ(raw(resized(HCAMEM_IOC_EXPORT, size), space.data()), EINVAL) << size;
    }
    for (const unsigned size : {0U, 1U, 8U, unsigned{sizeof(hcamem_info)} - 1}) {
        EXPECT_EQ(raw(resized(HCAMEM_IOC_INFO, size), space.data()), EINVAL) << size;
    }
}

TEST_F(BadInput, longer_structures_are_taken_if_their_tail_is_zero) {
    struct {
        hcamem_create known;
        unsigned char tail[24];
    } longer{};
    const unsigned long request = resized(HCAMEM_IOC_CREATE, sizeof longer);
    for (const std::size_t at : {std::size_t{0}, std::size_t{7}, sizeof longer.tail - 1}) {
        longer.known = create_request(page_size, {});
        std::memset(longer.tail, 0, sizeof longer.tail);
        longer.tail[at] = 1;
        EXPECT_EQ(raw(request, &longer), E2BIG) << at;
    }
    const Node own;
    longer.known = create_request(page_size, {});
    std::memset(longer.tail, 0, sizeof longer.tail);
    ASSERT_EQ(ioctl(own.fd(), request, &longer), 0) << std::strerror(errno);
    EXPECT_NE(longer.known.offset, 0U);
    void* mapped =
        mmap(nullptr, page_size, rw, MAP_SHARED, own.fd(), static_cast<off_t>(longer.known.offset));
    ASSERT_NE(mapped, MAP_FAILED);

    struct {
        hcamem_export known;
        unsigned char tail[24];
    } out{};
    out.known.addr = reinterpret_cast<std::uintptr_t>(mapped);
    out.known.length = page_size;
    out.tail[3] = 1;
    EXPECT_EQ(raw(resized(HCAMEM_IOC_EXPORT, sizeof out), &out), E2BIG);
    out.tail[3] = 0;
    EXPECT_EQ(raw(resized(HCAMEM_IOC_EXPORT, sizeof out), &out), 0);
    const UniqueFd dma_buf(out.known.fd);
    munmap(mapped, page_size);
}

TEST_F(BadInput, longer_info_is_filled_as_far_as_known) {
    struct {
        hcamem_info known;
        unsigned char tail[24];
    } longer{};
    ASSERT_EQ(raw(resized(HCAMEM_IOC_INFO, sizeof longer), &longer), 0);
    EXPECT_EQ(longer.known.abi_version, static_cast<unsigned>(HCAMEM_ABI_VERSION));
    EXPECT_TRUE(all_equal(longer.tail, 0));
}

TEST_F(BadInput, pointers_that_lead_nowhere) {
    auto* nowhere = reinterpret_cast<void*>(std::uintptr_t{16});
    auto* kernel_space = reinterpret_cast<void*>(~std::uintptr_t{0} - 4095);
    for (void* bad : {static_cast<void*>(nullptr), nowhere, kernel_space}) {
        EXPECT_EQ(raw(HCAMEM_IOC_INFO, bad), EFAULT);
        EXPECT_EQ(raw(HCAMEM_IOC_CREATE, bad), EFAULT);
        EXPECT_EQ(raw(HCAMEM_IOC_EXPORT, bad), EFAULT);
    }
}

// The work is done before the answer fails: it must be undone.
TEST_F(BadInput, answers_that_cannot_be_written) {
    const hcamem_create request = create_request(3 * MiB, {});
    const ReadOnlyPage create(&request, sizeof request);
    EXPECT_EQ(raw(HCAMEM_IOC_CREATE, create.get()), EFAULT);

    const std::uint64_t before = node_.total();
    {
        const Region region(node_, page_size);
        hcamem_export out{};
        out.addr = reinterpret_cast<std::uintptr_t>(region.data());
        out.length = page_size;
        const ReadOnlyPage page(&out, sizeof out);
        const std::size_t descriptors = open_descriptors();
        EXPECT_EQ(raw(HCAMEM_IOC_EXPORT, page.get()), EFAULT);
        EXPECT_EQ(open_descriptors(), descriptors);
    }
    EXPECT_TRUE(eventually([&] { return node_.total() == before; })) << "a lost dma-buf holds it";

    const hcamem_info info{};
    const ReadOnlyPage answer(&info, sizeof info);
    EXPECT_EQ(raw(HCAMEM_IOC_INFO, answer.get()), EFAULT);
}

TEST_F(BadInput, export_of_what_is_not_ours) {
    const Region region(node_, 4 * page_size);
    EXPECT_EQ(export_errno(region.data(), 0), EINVAL);
    EXPECT_EQ(export_errno(region.data(), region.size(), 1), EINVAL);
    EXPECT_EQ(export_errno(nullptr, page_size), EINVAL);
    std::array<unsigned char, 64> on_stack{};
    EXPECT_EQ(export_errno(on_stack.data(), on_stack.size()), EINVAL);
    EXPECT_EQ(export_errno(region.data(), region.size() + 1), EINVAL);
    EXPECT_EQ(export_errno(region.data() - 1, 2), EINVAL);
    EXPECT_EQ(export_errno(region.data() + region.size(), 1), EINVAL);

    hcamem_export descriptor_given{};
    descriptor_given.addr = reinterpret_cast<std::uintptr_t>(region.data());
    descriptor_given.length = 1;
    descriptor_given.offset = 0;
    ASSERT_EQ(node_.try_export(descriptor_given), 0);
    const UniqueFd dma_buf(descriptor_given.fd);
}

TEST_F(BadInput, export_of_ranges_that_wrap) {
    const Region region(node_, 4 * page_size);
    const auto addr = reinterpret_cast<std::uintptr_t>(region.data());
    for (const std::uint64_t length :
         {std::uint64_t{1} << 62, std::uint64_t{1} << 63, ~std::uint64_t{0},
          ~std::uint64_t{0} - addr, ~std::uint64_t{0} - addr + 1, ~std::uint64_t{0} - addr + 2,
          ~std::uint64_t{0} - page_size + 2}) {
        EXPECT_EQ(export_errno(region.data(), length), EINVAL) << std::hex << length;
        EXPECT_EQ(export_errno(region.data() + 5, length), EINVAL) << std::hex << length;
    }
    hcamem_export high{};
    high.addr = ~std::uint64_t{0} - 10;
    high.length = 100;
    EXPECT_EQ(node_.try_export(high), EINVAL);
}

TEST_F(BadInput, export_over_a_hole) {
    const Region region(node_, 4 * page_size);
    munmap(region.data() + page_size, page_size);
    EXPECT_EQ(export_errno(region.data(), 2 * page_size), EINVAL);
    EXPECT_EQ(export_errno(region.data(), region.size()), EINVAL);
    EXPECT_EQ(export_errno(region.data() + page_size, page_size), EINVAL);
}

TEST_F(BadInput, export_over_a_mapping_of_something_else) {
    const Region region(node_, 4 * page_size);
    void* other = mmap(region.data() + page_size, page_size, rw,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    ASSERT_NE(other, MAP_FAILED);
    EXPECT_EQ(export_errno(region.data(), 3 * page_size), EINVAL);
    EXPECT_EQ(export_errno(other, page_size), EINVAL);
}

TEST_F(BadInput, export_across_two_regions) {
    // Room for both, then each over its half.
    void* room = mmap(nullptr, 2 * page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(room, MAP_FAILED);
    auto* first = static_cast<unsigned char*>(room);
    for (int i = 0; i < 2; ++i) {
        ASSERT_NE(mmap(first + static_cast<std::size_t>(i) * page_size, page_size, rw,
                       MAP_SHARED | MAP_FIXED, node_.fd(), 0),
                  MAP_FAILED);
    }
    EXPECT_EQ(export_errno(first, 2 * page_size), EINVAL);
    EXPECT_EQ(export_errno(first + page_size - 1, 2), EINVAL);
    const UniqueFd one = node_.export_range(first + page_size - 1, 1);
    EXPECT_TRUE(one.valid());
    munmap(room, 2 * page_size);
}

// EXPORT hands out write access, so no way to it may start from less. A mapping that
// merely is read-only now could be made writable by its owner.
TEST_F(BadInput, export_of_a_mapping_that_may_not_be_written) {
    const Region region(node_, 2 * page_size);
    ASSERT_EQ(mprotect(region.data(), page_size, PROT_READ), 0);
    EXPECT_TRUE(node_.export_range(region.data(), 2 * page_size).valid());

    const UniqueFd dma_buf = node_.export_range(region.data(), page_size);
    const std::string path = "/proc/self/fd/" + std::to_string(dma_buf.get());
    const UniqueFd weaker(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (weaker.valid()) {
        void* mapped = mmap(nullptr, page_size, PROT_READ, MAP_SHARED, weaker.get(), 0);
        ASSERT_NE(mapped, MAP_FAILED);
        EXPECT_EQ(mprotect(mapped, page_size, rw), -1);
        EXPECT_EQ(export_errno(mapped, page_size), EACCES);
        munmap(mapped, page_size);
    } else {
        EXPECT_EQ(errno, ENXIO) << "the kernel gives out no second file of a dma-buf";
    }
}
